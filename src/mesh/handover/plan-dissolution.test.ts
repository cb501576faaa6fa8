import { describe, expect, it } from "vitest";
import { modelApp } from "../../../test/support/model-app.ts";
import { appPod, proxyFacts } from "../../../test/support/pod-facts.ts";
import { group, snapshot, subset, table } from "../../../test/support/route-table.ts";
import { CLUSTER_OBJECTS, CLUSTER_SERVERS } from "../contract/route-type.ts";
import { mayReach } from "../ownership/clusters.ts";
import type { Snapshot } from "../ownership/snapshot.ts";
import { isDissolved, planDissolution } from "./plan-dissolution.ts";
import type { FactsOf } from "./proxy-facts.ts";

const POD = appPod("p");
const FACTS = proxyFacts();

describe("an app that is deleted", () => {
  const divided = { canary: ["pilot"] };

  it("drains the other subsets, gives everything to the default subset, and moves all pods to the default subset, in that order", () => {
    const app = modelApp(["prod", "pilot"], divided);
    app.pod("d", "").pod("c1", "canary").pod("c2", "canary").settle();
    expect(app.writers("pilot")).toEqual(["canary"]);
    app.delete();
    app.reconcile();
    app.deliver("c1");
    app.deliver("d");
    app.reconcile();
    // c2 still has a claim.
    expect(app.writers("pilot")).toEqual(["canary"]);
    expect(app.reads("c1", "pilot")).toBe(true);
    expect(app.enforced("c1").subset).toBe("canary");
    app.deliver("c2");
    app.reconcile();
    app.deliver("d");
    expect(app.writers("pilot")).toEqual([""]);
    app.settle();
    for (const name of ["d", "c1", "c2"]) expect(app.enforced(name)).toMatchObject({ subset: "", lockName: "lock" });
    expect(app.isDissolved()).toBe(true);
  });

  it("retains in its pods everything that they owned, so no operator sees deletions and no pod is restarted", () => {
    const app = modelApp(["prod", "pilot"], divided, { onLoss: "InPlace" });
    app.pod("d", "").pod("c", "canary", { controlled: false }).settle();
    app.delete();
    for (let step = 0; step < 12; step++) {
      expect(app.reads("c", "pilot")).toBe(true);
      expect(app.reads("d", "prod")).toBe(true);
      app.reconcile();
      app.deliver(step % 2 === 0 ? "c" : "d");
    }
    expect(app.isDissolved()).toBe(true);
    expect(app.enforced("c").table.retained).toBeUndefined();
  });

  it("shares what a sharded family shares until the shards are drained, and then refuses it until all own it", () => {
    const family = { canary: ["", "pilot"], beta: ["prod"] };
    const app = modelApp(["", "prod", "pilot"], family, { sharded: [group("", "pods")] });
    app.pod("c", "canary").pod("b", "beta").settle();
    expect([app.writers("pilot"), app.writers("prod"), app.writers("")]).toEqual([["canary"], ["beta"], ["canary"]]);
    app.delete();
    const seen: string[] = [];
    for (let step = 0; step < 12; step++) {
      app.reconcile();
      app.deliver(step % 3 === 0 ? "b" : "c");
      expect([app.writers("pilot").length, app.writers("prod").length, app.writers("").length]).toEqual(
        Array(3).fill(expect.toSatisfy((count) => count <= 1)),
      );
      for (const [name, place] of [
        ["c", "pilot"],
        ["c", ""],
        ["b", "prod"],
      ] as const)
        expect([app.reads(name, place), app.isRefused(name, "pods")]).toContain(true);
      for (const name of ["b", "c"]) {
        expect([app.reads(name, "prod", "secrets"), app.isRefused(name, "secrets")]).toContain(true);
        seen.push(`${name} ${app.enforced(name).subset} ${app.isRefused(name, "secrets") ? "refused" : "reads"}`);
      }
    }
    expect(app.isDissolved()).toBe(true);
    expect([...new Set(seen)]).toEqual(["b beta reads", "c canary reads", "c  refused", "b  refused", "c  reads", "b  reads"]);
  });

  it("lets no shared resource vanish for the only pod of a subset", () => {
    const app = modelApp(["", "pilot"], { canary: ["", "pilot"] }, { sharded: [group("", "pods")] });
    app.pod("c", "canary").settle();
    app.delete();
    for (let step = 0; step < 6; step++) {
      app.reconcile();
      app.deliver("c");
      for (const resource of ["pods", "secrets"])
        expect([app.reads("c", "pilot", resource), app.isRefused("c", resource)]).toContain(true);
    }
    expect(app.isDissolved()).toBe(true);
  });

  it("waits for a disconnected pod until the pod is gone", () => {
    const app = modelApp(["prod", "pilot"], divided);
    app.pod("d", "").pod("c", "canary").settle();
    app.delete();
    for (let round = 0; round < 4; round++) {
      app.reconcile();
      app.deliver("d");
    }
    expect(app.isDissolved()).toBe(false);
    expect(app.writers("pilot")).toEqual(["canary"]);
    app.gone("c").settle();
    expect(app.isDissolved()).toBe(true);
    expect(app.writers("pilot")).toEqual([""]);
  });

  it("does not wait for pods without a proxy, which already may write everything", () => {
    const app = modelApp(["prod", "pilot"], divided);
    app.bare("old").pod("d", "").pod("c", "canary").settle();
    app.delete();
    app.settle();
    expect(app.isDissolved()).toBe(true);
  });

  it("waits for a pod with another app's proxy, whose claims are not known", () => {
    const app = modelApp(["prod", "pilot"], divided);
    app.pod("d", "").settle();
    app.pod("other", "", { proxy: "other-app", running: true });
    app.delete();
    app.settle();
    expect(app.enforced("d").table.fenced).toEqual(new Set(["pilot"]));
    expect(app.isDissolved()).toBe(false);
    app.gone("other").settle();
    expect(app.isDissolved()).toBe(true);
  });

  it("dissolves at once if it has no pod and no proxy enforces its routes, such as an app that selects another app's pods", () => {
    const told = (app: string) => ({
      ...snapshot(table([subset("canary")], { n: [0] })),
      app: { namespace: "shop", name: app },
      subset: "canary",
    });
    const of = (enforced: Snapshot | undefined) => {
      const factsOf = () => enforced && { ...FACTS, acknowledged: enforced };
      const pods = [{ ...POD, proxy: "other-app" as const }];
      const plan = planDissolution({
        app: { namespace: "shop", name: "app" },
        words: undefined,
        pods,
        factsOf,
        lockName: "",
        namespaces: ["n"],
      });
      return { waits: plan.waits.length, isDissolved: isDissolved(plan, pods, factsOf) };
    };
    expect(of(told("first"))).toEqual({ waits: 0, isDissolved: true });
    expect(of(undefined)).toMatchObject({ isDissolved: true });
    expect(of(told("app"))).toMatchObject({ isDissolved: false });
  });

  it("does not wait for pods that enforce another app's routes", () => {
    const app = { namespace: "shop", name: "app" };
    const pods = [
      { ...POD, name: "a" },
      { ...POD, name: "b", proxy: "other-app" as const },
    ];
    const whole = { ...FACTS, acknowledged: undefined as Snapshot | undefined };
    const others = { ...FACTS, acknowledged: { ...snapshot(table([], {})), app: { namespace: "shop", name: "first" } } };
    const factsOf = (pod: string) => (pod === "shop/a" ? whole : others);
    const plan = planDissolution({ app, words: undefined, pods, factsOf, lockName: "", namespaces: ["n"] });
    expect(plan.waits).toEqual([]);
    expect(isDissolved(plan, pods, factsOf)).toBe(false);
    whole.acknowledged = { ...plan.rulesFor(POD), version: 1 };
    expect(isDissolved(plan, pods, factsOf)).toBe(true);
  });

  it("waits for an injected pod that has not started: without an app no manager would send it routes", () => {
    const app = modelApp(["prod", "pilot"], divided);
    app.pod("d", "").settle();
    app.delete();
    app.pod("new", "canary").reconcile();
    app.deliver("d");
    app.reconcile();
    expect(app.isDissolved()).toBe(false);
    // A manager with which the pod has not registered waits for it too.
    app.failOver();
    app.report("d").reconcile();
    app.deliver("d");
    expect(app.isDissolved()).toBe(false);
    app.report("new").settle();
    expect(app.enforced("new").subset).toBe("");
    expect(app.isDissolved()).toBe(true);
  });

  it("waits for pods that have not registered with a new manager, and grants nothing before", () => {
    const app = modelApp(["prod", "pilot"], divided);
    app.pod("d", "").pod("c", "canary").settle();
    app.delete();
    app.failOver();
    app.report("d").reconcile();
    app.deliver("d");
    expect(app.writers("pilot")).toEqual(["canary"]);
    expect(app.isDissolved()).toBe(false);
    app.report("c").settle();
    expect(app.isDissolved()).toBe(true);
  });

  it("continues under a new manager", () => {
    const app = modelApp(["prod", "pilot"], divided);
    app.pod("d", "").pod("c1", "canary").pod("c2", "canary").settle();
    app.delete();
    for (let round = 0; round < 3; round++) {
      app.reconcile();
      app.deliver("d");
      app.deliver("c1");
      app.failOver();
      app.report("d").report("c1").report("c2");
    }
    app.settle();
    expect(app.isDissolved()).toBe(true);
  });

  it("gives retained namespaces back to the pod, which then needs no restart", () => {
    const app = modelApp(["prod", "mover"], {});
    app.pod("d", "").pod("c", "canary").settle();
    app.wish({ canary: ["mover"] }).settle();
    expect(app.enforced("d").table.retained).toBeDefined();
    app.delete();
    app.settle();
    expect(app.enforced("d").table.retained).toBeUndefined();
    expect(app.isDissolved()).toBe(true);
  });

  it("takes the name of the lock from the status if the spec is invalid and no proxy has registered", () => {
    const facts = { app: { namespace: "shop", name: "app" }, pods: [POD], lockName: undefined, namespaces: ["n"] };
    const nameBy = (lastLockName: string | undefined, factsOf: FactsOf) =>
      planDissolution({ ...facts, words: undefined, factsOf, lastLockName }).rules.get("")?.lockName;
    expect(nameBy("old", () => undefined)).toBe("old");
    expect(
      nameBy("old", () => ({ ...FACTS, acknowledged: { ...snapshot(table([], {})), app: facts.app, lockName: "new" } })),
    ).toBe("new");
    expect(nameBy(undefined, () => undefined)).toBe("");
  });

  it("works for a spec that is no longer valid: the pods' snapshots contain the name of the lock and the subsets", () => {
    const app = modelApp(["prod", "pilot"], divided);
    app.pod("d", "").pod("c", "canary").settle();
    app.delete({ specIsBad: true });
    app.settle();
    expect(app.enforced("c")).toMatchObject({ subset: "", lockName: "lock" });
    expect(app.isDissolved()).toBe(true);
  });

  it("keeps its clusters closed to pods that do not lead yet when they join the default subset", () => {
    const app = { namespace: "shop", name: "app" };
    const pods = [appPod("d"), appPod("c", "canary")];
    const eu = { name: "eu", servers: ["eu:443"], drainMs: 1_000, owner: "canary" };
    const enforced = new Map<string, Snapshot>(
      pods.map(({ name, subset }) => [name, { ...snapshot(table([], {}), { subset, clusters: [eu] }), app }]),
    );
    const factsOf: FactsOf = (pod) =>
      proxyFacts({
        acknowledged: enforced.get(pod.slice("shop/".length)),
        capabilities: new Set([CLUSTER_OBJECTS, CLUSTER_SERVERS]),
      });
    const plan = () => planDissolution({ app, words: undefined, pods, factsOf, lockName: "lock", namespaces: ["n"] });
    const seen: string[] = [];
    for (let version = 2; version < 12; version++) {
      const pod = pods[version % 2] ?? POD;
      enforced.set(pod.name, { ...plan().rulesFor(pod), version });
      const writers = [...enforced].filter(([, routes]) => mayReach(routes, "eu:443")).map(([name]) => name);
      seen.push(writers.join());
    }
    expect([...new Set(seen)]).toEqual(["c", "", "d", "d,c"]);
    expect(enforced.get("c")).toMatchObject({ subset: "", clusters: [{ ...eu, owner: "" }] });
    expect(isDissolved(plan(), pods, factsOf)).toBe(true);
  });
});
