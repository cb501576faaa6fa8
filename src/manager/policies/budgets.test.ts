import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { limitRule } from "../../../test/support/policies.ts";
import { NO_POLICIES } from "../../policy/policy.ts";
import { type BudgetResource, type BudgetShare, WHOLE } from "../../wire/budget-type.ts";
import { NO_REPORTS, type ShareReportMessage } from "../../wire/messages.ts";
import type { ProxyFacts } from "../facts/proxy-facts.ts";
import type { KnownPolicy } from "./accepted-policies.ts";
import { createBudgets } from "./budgets.ts";
import type { TargetPod } from "./policy-kind.ts";

const RULE = limitRule({ kind: "bucket", perSecond: 1, burst: 100, per: "Policy" });
const { uid, rule } = RULE.origin;

/** The pods a and b, of which tests say what their proxies have reported. */
function setUp() {
  const facts = new Map<string, Partial<ProxyFacts>>();
  const sent = new Map<string, BudgetResource>();
  const registry = {
    facts: (pod: string) => facts.get(pod) as ProxyFacts | undefined,
    publish: (pod: string, _type: unknown, resource: unknown) => void sent.set(pod, resource as BudgetResource),
  };
  const budgets = createBudgets({ registry, clock: createFakeClock() });
  const object = { metadata: { uid } };
  const policy = { rules: { ...NO_POLICIES, limits: [RULE] }, isFor: () => true };
  const pods = ["a", "b"].map((name) => ({ namespace: "shop", name, uid: name, hasRun: true }));
  return {
    pods,
    proxy(name: string, shares: ShareReportMessage | null, changes: Partial<ProxyFacts> = {}): void {
      facts.set(`shop/${name}`, { ...NO_REPORTS, capabilities: new Set(["type:budget"]), connected: true, shares, ...changes });
    },
    /** @param known false: the object is invalid, and this manager has never seen its rules */
    deal(known = true): void {
      const each = { object, policy: known ? policy : undefined } as unknown as KnownPolicy;
      budgets.deal("shop", [each], pods as unknown as TargetPod[]);
    },
    shareOf: (name: string) => sent.get(`shop/${name}`)?.shares.find((share) => share.rule === rule)?.millionths,
    sent,
  };
}

const share = (millionths: number, wantsMore = false): ShareReportMessage => ({
  version: 7,
  shares: millionths === 0 ? [] : [{ uid, rule, millionths, wantsMore }],
});

it("a new manager lets no share grow before every proxy that may hold one has reported", () => {
  const { proxy, deal, shareOf } = setUp();
  proxy("a", share(100_000, true));
  deal(); // b has not registered
  expect(shareOf("a")).toBe(100_000);
  proxy("b", null); // b has registered, and not reported
  deal();
  expect(shareOf("a")).toBe(100_000);
  proxy("b", share(0));
  deal();
  expect(shareOf("a")).toBe(950_000);
});

it("a pod whose proxy has never run holds nothing, and holds up nobody", () => {
  const { pods, proxy, deal, shareOf } = setUp();
  pods[1] = { namespace: "shop", name: "b", uid: "b", hasRun: false };
  proxy("a", share(0));
  deal();
  expect(shareOf("a")).toBe(WHOLE / 2);
});

it("a proxy that is away keeps what it has, and the others get no part of it", () => {
  const { proxy, deal, shareOf } = setUp();
  proxy("a", share(50_000, true));
  proxy("b", share(600_000), { connected: false });
  deal();
  expect([shareOf("a"), shareOf("b")]).toEqual([400_000, undefined]);
});

it("a proxy of an older version gets no share, and takes none from the others", () => {
  const { proxy, deal, shareOf } = setUp();
  proxy("a", share(0));
  proxy("b", null, { capabilities: new Set(["type:policy"]) });
  deal();
  expect([shareOf("a"), shareOf("b")]).toEqual([WHOLE, undefined]);
});

it("shares of rules that this manager has never seen stay as they are", () => {
  const { proxy, deal, sent } = setUp();
  const other: BudgetShare = { uid: "uid-of-another", rule: "r", millionths: 5 };
  const shares = [...share(400_000).shares, { ...other, wantsMore: false }];
  proxy("a", { version: 7, shares });
  proxy("b", share(0));
  deal(false);
  expect(sent.get("shop/a")?.shares).toEqual([{ uid, rule, millionths: 400_000 }]);
  expect(sent.get("shop/b")).toBeUndefined();
});

it("a share that was sent counts until a report of a later version", () => {
  const { proxy, deal, shareOf, sent } = setUp();
  proxy("a", share(900_000, true));
  proxy("b", share(0));
  deal();
  const { version = 0 } = sent.get("shop/a") ?? {};
  expect([shareOf("a"), shareOf("b")]).toEqual([950_000, 50_000]);
  // a has what it was sent, and no longer wants more. Its smaller share is sent, and not reported yet.
  proxy("a", { version, shares: share(950_000).shares });
  proxy("b", { version, shares: share(50_000, true).shares });
  deal();
  expect([shareOf("a"), shareOf("b")]).toEqual([50_000, 50_000]);
  proxy("a", { version: version + 1, shares: share(50_000).shares });
  deal();
  expect([shareOf("a"), shareOf("b")]).toEqual([50_000, 950_000]);
});
