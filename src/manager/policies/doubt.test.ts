import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { createPolicyProxy, createPolicyWorld } from "../../../test/support/policy-world.ts";
import { sampleCircuitBreaker, sampleFaultInjection, sampleTrafficPolicy } from "../../../test/support/traffic-objects.ts";
import { KUSIONSTACK_FINALIZER } from "../../api/kusionstack-keys.ts";

const BREAKER = sampleCircuitBreaker();
/** As a version accepted it that checks less. */
const INVALID = sampleCircuitBreaker({ resourceRules: [{ apiGroups: [""], resources: ["pods"], verbs: ["proxy"] }] });
const FAULT = sampleFaultInjection();
const TRAFFIC = sampleTrafficPolicy();

let world: ReturnType<typeof createPolicyWorld>;
beforeEach(() => {
  world = createPolicyWorld();
  world.app("shop");
});

describe("a manager that has restarted and finds an invalid object that was in force", () => {
  const begin = async () => {
    const proxy = world.pod("shop-0", "shop");
    world.put("old", BREAKER);
    world.put("night", FAULT);
    await world.reconcile();
    expect(proxy.inForce).toEqual(["night/slow", "old/delete-pods"]);
    world.put("old", INVALID);
    world.restartManager();
    return proxy;
  };

  it("takes a deleted fault back, adds a new rule, and keeps only the rules of the invalid object (D3)", async () => {
    const proxy = await begin();
    world.remove("FaultInjection", "night");
    world.put("new", TRAFFIC);
    await world.reconcile();
    expect(proxy.inForce).toEqual(["new/rateLimiting.ratePolicies[0].bucket", "old/delete-pods"]);
  });

  it("keeps them over a second restart, and drops them when the object is deleted (D3)", async () => {
    const proxy = await begin();
    await world.reconcile();
    world.restartManager();
    await world.reconcile();
    expect(proxy.inForce).toEqual(["night/slow", "old/delete-pods"]);
    world.remove("CircuitBreaker", "old");
    await world.reconcile();
    expect(proxy.inForce).toEqual(["night/slow"]);
  });

  it("replaces them when the object is valid again (D3)", async () => {
    const proxy = await begin();
    await world.reconcile();
    world.put("old", sampleCircuitBreaker({ name: "other" }));
    await world.reconcile();
    expect(proxy.inForce).toEqual(["night/slow", "old/other"]);
  });

  it("gives a new pod all valid rules (D3)", async () => {
    await begin();
    const late = world.pod("shop-1", "shop");
    await world.reconcile();
    expect(late.inForce).toEqual(["night/slow"]);
  });
});

describe("a pod whose app is deleted", () => {
  it("loses a deleted fault and gets a new limit at once, since both select it by labels (D4)", async () => {
    const proxy = world.pod("shop-0", "shop");
    world.put("night", FAULT);
    world.put("traffic", TRAFFIC);
    await world.reconcile();
    world.apps.delete("shop");
    world.app("another");
    await world.reconcile();
    world.remove("FaultInjection", "night");
    world.put("guard", BREAKER);
    await world.reconcile();
    expect(proxy.inForce).toEqual(["guard/delete-pods", "traffic/rateLimiting.ratePolicies[0].bucket"]);
  });

  it("keeps the rules for a subset, which nobody knows now, until the TrafficPolicy is deleted (D4)", async () => {
    const [traffic, bucket] = ["traffic", "traffic/rateLimiting.ratePolicies[0].bucket"];
    world.app("shop", "canary");
    const [canary, later] = [world.pod("shop-0", "shop"), createPolicyProxy()];
    world.put(traffic, sampleTrafficPolicy({ targetVirtualApps: [{ name: "shop", specificSubsets: ["canary"] }] }));
    await world.reconcile();
    world.apps.clear();
    world.pod("shop-1", "shop", later);
    world.put("guard", BREAKER);
    await world.reconcile();
    expect([canary.inForce, later.inForce]).toEqual([["guard/delete-pods", bucket], ["guard/delete-pods"]]);
    world.remove("TrafficPolicy", traffic);
    await world.reconcile();
    expect(canary.inForce).toEqual(["guard/delete-pods"]);
  });
});

describe("an object in deletion", () => {
  const DELETED = { deletionTimestamp: "2026-11-26T00:00:00Z" };

  it.each([
    ["FaultInjection", FAULT],
    ["CircuitBreaker", BREAKER],
    ["TrafficPolicy", TRAFFIC],
    ["CircuitBreaker", INVALID],
  ])("enforces nothing, although a finalizer holds this %s (D13)", async (kind, object) => {
    const proxy = world.pod("shop-0", "shop");
    world.put("one", object === INVALID ? BREAKER : object);
    await world.reconcile();
    expect(proxy.inForce).toHaveLength(1);
    if (object === INVALID) world.restartManager();
    world.put("one", object, { ...DELETED, finalizers: ["example.com/held"] });
    await world.reconcile();
    expect(proxy.inForce).toEqual([]);
    expect(world.exists(kind, "one")).toBe(true);
    expect(world.conditionOf(kind, "one", "Accepted")).toMatchObject({
      reason: "Disabled",
      message: "the object is being deleted",
    });
  });

  it("is released from KusionStack's finalizer, and from no other one (D13)", async () => {
    world.put("one", FAULT, { ...DELETED, finalizers: [KUSIONSTACK_FINALIZER] });
    world.put("two", FAULT, { ...DELETED, finalizers: ["example.com/held", KUSIONSTACK_FINALIZER] });
    world.put("three", FAULT, { finalizers: [KUSIONSTACK_FINALIZER] });
    await world.reconcile();
    expect(["one", "two", "three"].map((name) => world.exists("FaultInjection", name))).toEqual([false, true, true]);
  });
});

it("in any mix of objects a pod has every rule of every valid one, and keeps exactly the doubtful ones (D3, D4)", async () => {
  const change = fc.constantFrom("valid", "invalid", "deleted", "stays");
  const kind = fc.constantFrom("CircuitBreaker", "FaultInjection", "TrafficPolicy");
  const objects = fc.array(fc.record({ kind, first: fc.boolean(), edit: change }), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(objects, fc.boolean(), async (mix, isAppGone) => {
      world = createPolicyWorld();
      world.app("shop", "canary");
      const proxy = world.pod("shop-0", "shop");
      const subset = { targetVirtualApps: [{ name: "shop", specificSubsets: ["canary"] }] };
      const valid = { CircuitBreaker: BREAKER, FaultInjection: FAULT, TrafficPolicy: sampleTrafficPolicy(subset) };
      const invalidOf = (object: Readonly<Record<string, unknown>>) => ({ ...object, spec: { selector: "none" } });
      for (const [at, { kind, first }] of mix.entries()) world.put(`o${at}`, first ? valid[kind] : invalidOf(valid[kind]));
      await world.reconcile();
      world.restartManager();
      if (isAppGone) world.apps.clear();
      for (const [at, { kind, edit }] of mix.entries()) {
        if (edit === "deleted") world.remove(kind, `o${at}`);
        else if (edit !== "stays") world.put(`o${at}`, edit === "valid" ? valid[kind] : invalidOf(valid[kind]));
      }
      await world.reconcile();
      const inForce = mix.flatMap(({ kind, first, edit }, at) => {
        const isValid = edit === "valid" || (edit === "stays" && first);
        // Of an app that is gone, nobody knows the subset of the pod: it keeps what it had.
        const isKnown = isValid && !(isAppGone && kind === "TrafficPolicy");
        return isKnown || (first && edit !== "deleted") ? [`o${at}`] : [];
      });
      expect(proxy.inForce.map((name) => name.split("/")[0])).toEqual(inForce);
    }),
    { numRuns: 100 },
  );
});
