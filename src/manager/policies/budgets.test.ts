import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { limitRule } from "../../../test/support/policies.ts";
import { threadCpuMs } from "../../../test/support/thread-cpu.ts";
import type { BudgetResource, BudgetShare } from "../../mesh/contract/budget-type.ts";
import { NO_REPORTS, type ShareReportMessage } from "../../mesh/contract/messages.ts";
import type { ProxyFacts } from "../../mesh/handover/proxy-facts.ts";
import { NO_POLICIES, WHOLE_BUDGET } from "../../policy/policy.ts";
import type { KnownPolicy } from "./accepted-policies.ts";
import { createBudgets } from "./budgets.ts";
import type { TargetPod } from "./policy-kind.ts";

const RULE = limitRule({ kind: "bucket", perSecond: 1, burst: 100, per: "Policy" });
const { uid, rule } = RULE.origin;

/** The pods a and b, of which tests say what their proxies have reported. */
function setUp() {
  const facts = new Map<string, Partial<ProxyFacts>>();
  const sent = new Map<string, BudgetResource>();
  /** The uids of policies that have no room, by pod. */
  const leftOutOf = new Map<string, string[]>();
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
    deal(known = true): Promise<void> {
      const each = { object, policy: known ? policy : undefined } as unknown as KnownPolicy;
      const targets = pods.map((pod) => ({ pod: pod as TargetPod, leftOut: new Set(leftOutOf.get(pod.name)), keeps: new Map() }));
      return budgets.deal("shop", [each], targets, async (items, work) => items.map(work));
    },
    shareOf: (name: string) => sent.get(`shop/${name}`)?.shares.find((share) => share.rule === rule)?.millionths,
    sent,
    leftOutOf,
  };
}

const share = (millionths: number, wantsMore = false): ShareReportMessage => ({
  version: 7,
  shares: millionths === 0 ? [] : [{ uid, rule, millionths, wantsMore }],
});

it("a new manager lets no share grow before every proxy that may hold one has reported", async () => {
  const { proxy, deal, shareOf } = setUp();
  proxy("a", share(100_000, true));
  await deal(); // b has not registered
  expect(shareOf("a")).toBe(100_000);
  proxy("b", null); // b has registered, and not reported
  await deal();
  expect(shareOf("a")).toBe(100_000);
  proxy("b", share(0));
  await deal();
  expect(shareOf("a")).toBe(950_000);
});

it("a pod whose proxy has never run holds nothing, and holds up nobody", async () => {
  const { pods, proxy, deal, shareOf } = setUp();
  pods[1] = { namespace: "shop", name: "b", uid: "b", hasRun: false };
  proxy("a", share(0));
  await deal();
  expect(shareOf("a")).toBe(WHOLE_BUDGET / 2);
});

it("a proxy that is away keeps what it has, and the others get no part of it", async () => {
  const { proxy, deal, shareOf } = setUp();
  proxy("a", share(50_000, true));
  proxy("b", share(600_000), { connected: false });
  await deal();
  expect([shareOf("a"), shareOf("b")]).toEqual([400_000, undefined]);
});

it("a proxy of an older version gets no share, and takes none from the others", async () => {
  const { proxy, deal, shareOf } = setUp();
  proxy("a", share(0));
  proxy("b", null, { capabilities: new Set(["type:policy"]) });
  await deal();
  expect([shareOf("a"), shareOf("b")]).toEqual([WHOLE_BUDGET, undefined]);
});

it("shares of rules that this manager has never seen stay as they are", async () => {
  const { proxy, deal, sent } = setUp();
  const other: BudgetShare = { uid: "uid-of-another", rule: "r", millionths: 5 };
  const shares = [...share(400_000).shares, { ...other, wantsMore: false }];
  proxy("a", { version: 7, shares });
  proxy("b", share(0));
  await deal(false);
  expect(sent.get("shop/a")?.shares).toEqual([{ uid, rule, millionths: 400_000 }]);
  expect(sent.get("shop/b")).toBeUndefined();
});

it("a share that was sent counts until a report of a later version", async () => {
  const { proxy, deal, shareOf, sent } = setUp();
  proxy("a", share(900_000, true));
  proxy("b", share(0));
  await deal();
  const { version = 0 } = sent.get("shop/a") ?? {};
  expect([shareOf("a"), shareOf("b")]).toEqual([950_000, 50_000]);
  // a has what it was sent, and no longer wants more. Its smaller share is sent, and not reported yet.
  proxy("a", { version, shares: share(950_000).shares });
  proxy("b", { version, shares: share(50_000, true).shares });
  await deal();
  expect([shareOf("a"), shareOf("b")]).toEqual([50_000, 50_000]);
  proxy("a", { version: version + 1, shares: share(50_000).shares });
  await deal();
  expect([shareOf("a"), shareOf("b")]).toEqual([50_000, 950_000]);
});

it("a pod in which the policy has no room gets no share, and the others have all", async () => {
  const { proxy, deal, shareOf, leftOutOf } = setUp();
  leftOutOf.set("b", [uid]);
  proxy("a", share(0));
  proxy("b", share(0));
  await deal();
  expect([shareOf("a"), shareOf("b")]).toEqual([WHOLE_BUDGET, undefined]);
});

it("divides the work about hundreds of pods and rules into slices, so that other namespaces go on", async () => {
  const limits = Array.from({ length: 256 }, (_, at) => ({ ...RULE, origin: { ...RULE.origin, rule: `r${at}` } }));
  const policy = { object: { metadata: { uid } }, policy: { rules: { ...NO_POLICIES, limits }, isFor: () => true } };
  const shares = limits.map((each) => ({ uid, rule: each.origin.rule, millionths: 0, wantsMore: false }));
  const facts = { ...NO_REPORTS, capabilities: new Set(["type:budget"]), connected: true, shares: { version: 1, shares } };
  const registry = { facts: () => facts as unknown as ProxyFacts, publish: () => undefined };
  const budgets = createBudgets({ registry, clock: createFakeClock() });
  const targets = Array.from({ length: 100 }, (_, at) => {
    const pod = { namespace: "shop", name: `p${at}`, uid: `p${at}`, hasRun: true } as TargetPod;
    return { pod, leftOut: new Set<string>(), keeps: new Map<string, string>() };
  });
  let longestMs = 0;
  await budgets.deal("shop", [policy as unknown as KnownPolicy], targets, async (items, work) =>
    items.map((item) => {
      const startMs = threadCpuMs();
      const result = work(item);
      longestMs = Math.max(longestMs, threadCpuMs() - startMs);
      return result;
    }),
  );
  // A few tenths of a millisecond. Without an index of the shares, each rule took 8 ms.
  expect(longestMs).toBeLessThan(100);
});
