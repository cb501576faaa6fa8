import { beforeEach, describe, expect, it } from "vitest";
import { createPolicyWorld, type PolicyProxy } from "../../../test/support/policy-world.ts";
import { sampleCircuitBreaker, sampleFaultInjection } from "../../../test/support/traffic-objects.ts";
import { MAX_RULE_SNAPSHOTS } from "../../api/policy-status.ts";
import type { RuleStateMessage } from "../../mesh/contract/messages.ts";

const KIND = "CircuitBreaker";
const OPENED: RuleStateMessage = {
  uid: "uid-1",
  rule: "delete-pods",
  opened: true,
  sinceMs: Date.UTC(2026, 10, 22, 10),
  halfOpen: false,
  cause: "no token left of 5",
};

let world: ReturnType<typeof createPolicyWorld>;
let proxy: PolicyProxy;
beforeEach(() => {
  world = createPolicyWorld();
  world.app("shop");
  proxy = world.pod("shop-0", "shop");
});
const snapshots = () => world.statusOf(KIND, "guard")?.targetStatus?.flatMap(({ limitingSnapshots = [] }) => limitingSnapshots);

describe("the status of a CircuitBreaker", () => {
  beforeEach(async () => {
    world.put("guard", sampleCircuitBreaker());
    await world.reconcile();
  });

  it("lists every rule that a synced proxy has, also one that never opened", async () => {
    expect(snapshots()).toEqual([{ name: "delete-pods", state: "Closed" }]);
    proxy.rules = [OPENED];
    await world.reconcile();
    const since = { lastTransitionTime: "2026-11-22T10:00:00.000Z" };
    expect(snapshots()).toEqual([{ name: "delete-pods", state: "Opened", cause: "no token left of 5", ...since }]);
    proxy.rules = [{ ...OPENED, halfOpen: true }];
    await world.reconcile();
    expect(snapshots()).toMatchObject([{ state: "HalfOpen" }]);
  });

  it("says of no rule that it is closed while its proxy has more open breakers than it reports", async () => {
    const others = Array.from({ length: MAX_RULE_SNAPSHOTS }, (_, at) => ({ ...OPENED, uid: "uid-2", rule: `rule-${at}` }));
    proxy.rules = others;
    await world.reconcile();
    expect(snapshots()).toEqual([]);
    proxy.rules = [...others.slice(1), { ...OPENED, uid: "uid-2", opened: false }];
    await world.reconcile();
    expect(snapshots()).toEqual([{ name: "delete-pods", state: "Closed" }]);
  });

  it("does not change with a failover of the manager, and no Event says that a breaker has closed (D14b)", async () => {
    proxy.rules = [OPENED];
    await world.reconcile();
    const before = world.statusOf(KIND, "guard");
    world.events.length = 0;
    Object.assign(proxy, { isRegistered: false });
    world.restartManager();
    await world.reconcile();
    await world.clock.advance(50_000);
    await world.reconcile();
    expect(world.statusOf(KIND, "guard")).toEqual(before);
    expect(world.events).toEqual([]);
  });

  it("does not change with a failover of the manager, also with more pods than it lists", async () => {
    const proxies = [proxy, ...Array.from({ length: 80 }, (_, at) => world.pod(`more-${at}`, "shop"))];
    proxy.rules = [OPENED];
    await world.reconcile();
    const before = world.statusOf(KIND, "guard");
    expect(before?.targets).toEqual({ total: 81, synced: 81, opened: 1 });
    for (const each of proxies) each.isRegistered = false;
    world.restartManager();
    await world.reconcile();
    expect(world.statusOf(KIND, "guard")).toEqual(before);
    // New rules are in force in no pod of which nothing is known.
    world.put("guard", sampleCircuitBreaker({ bucket: { burst: 9, interval: "1s", limit: 1 } }));
    await world.reconcile();
    expect(world.statusOf(KIND, "guard")?.targets).toEqual({ total: 81, synced: 0, opened: 1 });
  });

  it("says after a minute that a proxy is not connected, and keeps the state that it reported last (D14b)", async () => {
    proxy.rules = [OPENED];
    await world.reconcile();
    proxy.isConnected = false;
    expect(await world.reconcile()).toMatchObject({ requeueAfterMs: expect.any(Number) });
    expect(world.conditionOf(KIND, "guard", "Synced")).toMatchObject({ status: "True" });
    await world.clock.advance(60_000);
    await world.reconcile();
    expect(world.conditionOf(KIND, "guard", "Synced")).toMatchObject({ status: "Unknown", reason: "ProxyDisconnected" });
    expect(world.statusOf(KIND, "guard")?.targets).toEqual({ total: 1, synced: 0, opened: 1 });
    proxy.isConnected = true;
    await world.reconcile();
    expect(world.conditionOf(KIND, "guard", "Synced")).toMatchObject({ status: "True" });
  });

  it("notes the operator's lock that its app does not name, if the rules are about it (D6)", async () => {
    world.facts.set("ops/shop-0", { unnamedLock: { lockName: "op-lock", resource: "configmaps" } });
    await world.reconcile();
    expect(world.conditionOf(KIND, "guard", "Accepted")).toMatchObject({ reason: "Valid" });
    const all = { apiGroups: ["*"], resources: ["*"], verbs: ["*"], namespaces: ["*"] };
    world.put("guard", sampleCircuitBreaker({ resourceRules: [all] }));
    await world.reconcile();
    expect(world.conditionOf(KIND, "guard", "Accepted")).toMatchObject({ status: "True", reason: "NoLock" });
    world.facts.set("ops/shop-0", { unnamedLock: { lockName: "op-lock", resource: "leases.coordination.k8s.io" } });
    await world.reconcile();
    expect(world.conditionOf(KIND, "guard", "Accepted")).toMatchObject({ reason: "Valid" });
  });
});

describe("a FaultInjection", () => {
  const active = () => world.conditionOf("FaultInjection", "night", "Active");

  it("is Active from its start to its end, with an Event for each (D14c)", async () => {
    world.put("night", sampleFaultInjection({}, { maxDuration: "60s" }));
    await world.reconcile();
    await world.reconcile();
    const status = world.statusOf("FaultInjection", "night");
    const endsAt = new Date(Date.parse(status?.specSince ?? "") + 60_000).toISOString();
    expect(status).toMatchObject({ endsAt, mode: "Enforce" });
    expect(active()).toMatchObject({ status: "True", message: `faults are in effect in 1 pod; until ${endsAt.slice(0, 19)}Z` });
    expect(world.conditionOf("FaultInjection", "night", "Ready")).toMatchObject({ status: "True", reason: "Active" });
    await world.clock.advance(60_000);
    await world.reconcile();
    expect(active()).toMatchObject({ status: "False", reason: "Expired" });
    expect(world.events.map((each) => each.split(":")[0])).toEqual(["Warning FaultsStarted night", "Normal FaultsEnded night"]);
  });

  it("with a time of the day is Active at that time alone, and the manager looks again then", async () => {
    const nowMs = world.clock.now();
    const at = (ms: number) => new Date(nowMs + ms).toISOString().slice(11, 19);
    const effectiveTime = { startTime: at(600_000), endTime: at(660_000) };
    world.put("night", sampleFaultInjection({ effectiveTime }));
    const { requeueAfterMs } = (await world.reconcile()) as { readonly requeueAfterMs: number };
    expect(active()).toMatchObject({ status: "False", reason: "OutsideOfTime" });
    expect(world.clock.now() + requeueAfterMs).toBe(nowMs + 600_000);
    await world.clock.advance(requeueAfterMs);
    await world.reconcile();
    expect(active()).toMatchObject({ status: "True" });
    await world.clock.advance(60_000);
    await world.reconcile();
    expect(active()).toMatchObject({ status: "False" });
  });
});
