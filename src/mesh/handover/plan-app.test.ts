// Whole sequences of plans: rollout, undo, pause, adoption. Each step checks which pods may write.
// test/fuzz/handover.test.ts checks random orders of steps.
import { describe, expect, it } from "vitest";
import { modelApp } from "../../../test/support/model-app.ts";
import { appPod } from "../../../test/support/pod-facts.ts";

describe("a subset that loses a namespace", () => {
  it("retains it in its pods until their replacement, and the new owner is granted it", () => {
    const app = modelApp(["prod", "mover"], {});
    app.pod("d", "").pod("c", "canary").settle();
    app.wish({ canary: ["mover"] }).reconcile();
    app.deliver("d");
    expect(app.writers("mover")).toEqual([]);
    expect(app.reads("d", "mover")).toBe(true);
    app.settle();
    expect(app.writers("mover")).toEqual(["canary"]);
    expect(app.reads("d", "mover")).toBe(true);
    // The replacement of the pod retains nothing.
    app.gone("d").pod("d2", "").settle();
    expect(app.reads("d2", "mover")).toBe(false);
    expect(app.enforced("d2").table.retained).toBeUndefined();
  });

  it("loses it in place with onLoss InPlace, and in a pod without a controller", () => {
    const inPlace = modelApp(["prod", "mover"], {}, { onLoss: "InPlace" });
    inPlace.pod("d", "").settle();
    inPlace.wish({ canary: ["mover"] }).settle();
    expect(inPlace.reads("d", "mover")).toBe(false);
    const alone = modelApp(["prod", "mover"], {});
    alone.pod("d", "", { controlled: false }).settle();
    alone.wish({ canary: ["mover"] }).settle();
    expect(alone.reads("d", "mover")).toBe(false);
  });

  it("does not retain a young namespace, so a namespace that is labelled right after its creation restarts no pod", () => {
    const app = modelApp(["prod", "mover"], {});
    app.pod("d", "").pod("c", "canary").settle();
    app.young("fresh").wish({}, ["fresh"]).settle();
    expect(app.writers("fresh")).toEqual([""]);
    app.wish({ canary: ["fresh"] }).settle();
    expect(app.writers("fresh")).toEqual(["canary"]);
    expect(app.enforced("d").table.retained).toBeUndefined();
    app.wish({ canary: ["fresh", "mover"] }).settle();
    expect([app.reads("d", "fresh"), app.reads("d", "mover")]).toEqual([false, true]);
  });

  it("owns it again without a restart when the old spec is restored", () => {
    const app = modelApp(["prod", "mover"], {});
    app.pod("d", "").pod("c", "canary").settle();
    app.wish({ canary: ["mover"] }).settle();
    app.wish({}).reconcile();
    app.deliver("d");
    expect(app.reads("d", "mover")).toBe(true);
    app.settle();
    expect(app.writers("mover")).toEqual([""]);
    expect(app.reads("d", "mover")).toBe(true);
    expect(app.enforced("d").table.retained).toBeUndefined();
    // The canary's pod now retains the namespace and needs a restart.
    expect(app.enforced("c").table.retained).toBeDefined();
  });

  it("retains in a relabelled pod what its old subset owned, and the pod writes as its new subset", () => {
    const app = modelApp(["prod", "pilot"], { canary: ["pilot"] });
    app.pod("d1", "").pod("d2", "").pod("c", "canary").settle();
    app.relabel("d2", "canary").settle();
    expect(app.enforced("d2").subset).toBe("canary");
    expect([app.reads("d2", "prod"), app.reads("d2", "pilot")]).toEqual([true, true]);
    expect(app.writers("prod")).toEqual([""]);
    app.relabel("d2", "").settle();
    expect(app.reads("d2", "pilot")).toBe(true);
  });

  it("has one object and one version for all pods with equal rules", () => {
    const app = modelApp(["prod", "mover"], {});
    for (const name of ["d1", "d2", "d3"]) app.pod(name, "");
    app.settle();
    app.wish({ canary: ["mover"] }).reconcile();
    app.deliver("d1"); // d1 now retains what d2 and d3 will retain
    app.failOver();
    app.pod("d4", "").report("d1").report("d2").report("d3");
    const plan = app.plan();
    const rules = ["d1", "d2", "d3"].map((name) => plan.rulesFor({ ...POD, name }));
    expect(rules[0]?.table.retained).toBeDefined();
    expect(new Set(rules).size).toBe(1);
    app.settle();
    expect(app.enforced("d2")).toBe(app.enforced("d3"));
    expect(app.enforced("d1").version).toBe(app.enforced("d2").version);
    expect(plan.rulesFor({ ...POD, name: "d4" })).toBe(plan.rules.get(""));
    expect(app.enforced("d4").version).not.toBe(app.enforced("d1").version);
  });
});

const POD = appPod("");

describe("an app that limits how much moves at once", () => {
  const all = ["a", "b", "c", "d", "e"];

  it("moves nothing of an edit that moves too much, until it is confirmed, and serves new namespaces meanwhile", () => {
    const app = modelApp(all, {});
    app.pod("d", "").pod("c", "canary").limitMoves(20).settle();
    const before = app.enforced("d").version;
    app.wish({ canary: ["a", "b"] }).settle();
    expect(app.plan()).toMatchObject({ needsConfirmation: true, kept: 2 });
    expect(app.enforced("d").version).toBe(before);
    app.wish({ canary: ["a", "b", "fresh"] }, ["fresh"]).settle();
    expect([app.writers("a"), app.writers("fresh")]).toEqual([[""], ["canary"]]);
    app.limitMoves(undefined).settle();
    expect([app.writers("a"), app.writers("b")]).toEqual([["canary"], ["canary"]]);
    expect(app.plan()).toMatchObject({ needsConfirmation: false, kept: 0 });
  });

  it("keeps no namespace with a subset that is lost, unless the app is paused", () => {
    const app = modelApp(all, { canary: ["a", "b", "c"] });
    app.pod("d", "").pod("c", "canary").limitMoves(20).settle();
    app.pause(true).keepOnly("").wish({}).settle();
    expect(app.writers("a")).toEqual(["canary"]);
    app.pause(false).settle();
    expect([app.plan().needsConfirmation, app.writers("a"), app.writers("c")]).toEqual([false, [""], [""]]);
  });

  it("moves what is within the limit, and nothing more when the edit is taken back", () => {
    const app = modelApp(all, {});
    app.pod("d", "").pod("c", "canary").limitMoves(20).settle();
    app.wish({ canary: ["a"] }).settle();
    expect(app.writers("a")).toEqual(["canary"]);
    app.wish({ canary: ["b", "c"] }).settle();
    expect([app.plan().kept, app.writers("a"), app.writers("b")]).toEqual([3, ["canary"], [""]]);
    const version = app.enforced("d").version;
    app.wish({ canary: ["a"] }).settle();
    expect([app.plan().kept, app.enforced("d").version]).toEqual([0, version]);
  });

  it("does not limit the first division, which moves nothing that somebody owns by the mesh", () => {
    const app = modelApp(all, { canary: ["a", "b", "c"] });
    app.limitMoves(1).pod("d", "").pod("c", "canary").settle();
    expect([app.writers("a"), app.plan().needsConfirmation]).toEqual([["canary"], false]);
  });

  it("keeps waiting over a failover", () => {
    const app = modelApp(all, {});
    app.pod("d", "").pod("c", "canary").limitMoves(20).settle();
    app.wish({ canary: ["a", "b"] }).settle();
    app.failOver();
    app.report("d").report("c").settle();
    expect([app.writers("a"), app.plan().kept]).toEqual([[""], 2]);
  });
});

describe("an app that is paused", () => {
  it("moves nothing after an edit of the spec, and applies the spec to new namespaces", () => {
    const app = modelApp(["prod", "mover"], {});
    app.pod("d", "").pod("c", "canary").settle();
    const before = app.enforced("d").version;
    app
      .pause(true)
      .wish({ canary: ["mover"] })
      .settle();
    expect(app.plan().kept).toBe(1);
    expect(app.enforced("d").version).toBe(before);
    app.wish({ canary: ["mover", "fresh"] }, ["fresh"]).settle();
    expect([app.writers("mover"), app.writers("fresh")]).toEqual([[""], ["canary"]]);
    app.pause(false).settle();
    expect([app.writers("mover"), app.writers("fresh")]).toEqual([["canary"], ["canary"]]);
    expect(app.plan().kept).toBe(0);
  });

  it("completes moves that have begun, and moves nothing when the old spec is restored", () => {
    const app = modelApp(["prod", "mover"], {});
    app.pod("d", "").pod("c", "canary").settle();
    app.wish({ canary: ["mover"] }).reconcile();
    app.pause(true).settle();
    expect(app.writers("mover")).toEqual(["canary"]);
    app.wish({}).settle();
    expect(app.plan().kept).toBe(1);
    const version = app.enforced("c").version;
    app
      .wish({ canary: ["mover"] })
      .pause(false)
      .settle();
    expect(app.enforced("c").version).toBe(version);
  });

  it("keeps owners over a failover in which a new pod registers before the old pods", () => {
    const app = modelApp(["prod", "mover"], {});
    app.pod("d", "").pod("c", "canary").settle();
    app
      .pause(true)
      .wish({ canary: ["mover"] })
      .settle();
    app.failOver();
    app.pod("c2", "canary").reconcile();
    app.deliver("c2");
    app.report("d").report("c").settle();
    expect(app.writers("mover")).toEqual([""]);
    expect(app.plan().kept).toBe(1);
  });

  it("does not believe a table that one proxy invents, before and after a failover", () => {
    const app = modelApp(["prod", "mover"], { canary: ["mover"] });
    app.pod("d", "").pod("c", "canary").pod("liar", "beta").settle();
    app.pause(true).reconcile();
    const public_ = [{ apiGroups: ["*"], resources: ["*"] }];
    app.forge("liar", { beta: ["prod", "mover"] }, { sharedResources: public_ });
    expect(app.reconcile().desired.sharedResources).toEqual([]);
    app.settle();
    expect([app.writers("prod"), app.writers("mover"), app.plan().kept]).toEqual([[""], ["canary"], 0]);
    app.forge("liar", { beta: ["prod", "mover"] }, { sharedResources: public_ });
    app.failOver();
    app.report("liar").reconcile(); // the first that registers
    app.report("d").report("c").settle();
    expect(app.plan().desired.sharedResources).toEqual([]);
    expect([app.writers("prod"), app.writers("mover")]).toEqual([[""], ["canary"]]);
  });

  it("does not go back to an earlier table that one proxy registers again, in a higher version", () => {
    const app = modelApp(["prod", "mover"], { canary: [] });
    app.pod("d", "").pod("c", "canary").pod("liar", "beta").settle();
    app.wish({ canary: ["mover"] }).settle();
    app.pause(true).forge("liar", { canary: [] }).settle();
    expect([app.writers("mover"), app.plan().kept]).toEqual([["canary"], 0]);
  });

  it("applies the spec while no pod has a table", () => {
    const app = modelApp(["prod", "pilot"], { canary: ["pilot"] });
    app.pause(true).pod("c", "canary").settle();
    expect(app.writers("pilot")).toEqual(["canary"]);
  });
});

describe("an operator that runs without the mesh", () => {
  it("is granted nothing for its subsets while a pod without a proxy is left", () => {
    const app = modelApp(["prod", "pilot", "early"], { canary: ["pilot"], beta: ["early"] });
    app.bare("old1").bare("old2");
    const expectOldOnly = () => {
      for (const namespace of ["prod", "pilot", "early"]) expect(app.writers(namespace)).toEqual([""]);
    };
    app.gone("old1").pod("c", "canary").settle();
    expectOldOnly();
    expect(app.reads("c", "pilot")).toBe(false);
    expect(app.plan().waits).toContainEqual(expect.objectContaining({ podName: "old2", cause: "no-proxy" }));
    app.pod("b", "beta").pod("d", "").settle();
    expectOldOnly();
    expect(app.reads("d", "prod")).toBe(true);
    app.gone("old2").settle();
    expect(["prod", "pilot", "early"].map(app.writers)).toEqual([[""], ["canary"], ["beta"]]);
    for (const name of ["c", "b", "d"]) expect(app.enforced(name).table.retained).toBeUndefined();
  });

  it("runs without the mesh again after the deletion of the app, beside pods that write as the default subset", () => {
    const app = modelApp(["prod", "pilot"], { canary: ["pilot"] });
    app.pod("d", "").pod("c", "canary").settle();
    app.delete();
    app.settle();
    expect(app.isDissolved()).toBe(true);
    for (const name of ["c", "d"]) {
      app.gone(name).bare(`${name}-new`);
      expect([app.writers("prod"), app.writers("pilot")]).toEqual([[""], [""]]);
    }
  });

  it("delays moves while a pod without a proxy is left, and takes nothing from subsets that already own it", () => {
    const app = modelApp(["prod", "pilot", "mover"], { canary: ["pilot"] });
    app.pod("c", "canary").settle();
    app.bare("late").settle();
    app.wish({ canary: ["pilot", "mover"] }).settle();
    expect(app.enforced("c").table.fenced).toEqual(new Set(["mover"]));
    // Namespaces that the canary loses go to the default subset, and the pod without a proxy acts as that
    // subset.
    app.wish({}).pod("d", "").settle();
    expect(app.writers("pilot")).toEqual([""]);
  });
});

describe("a new leader", () => {
  const failedOver = () => {
    const app = modelApp(["prod", "pilot"], { canary: ["pilot"] });
    app.pod("d", "").pod("c", "canary").lateStatus("c").settle();
    app.wish({});
    app.failOver();
    return app.report("d");
  };

  it("does not trust a status that a pod never started: the previous leader may have just served it", () => {
    const app = failedOver();
    app.settle();
    expect(app.writers("pilot")).toEqual(["canary"]);
    app.report("c").settle();
    expect(app.writers("pilot")).toEqual([""]);
  });

  it("waits for pods that never started only as long as a kubelet's report may take", () => {
    const app = modelApp(["prod", "pilot"], { canary: ["pilot"] });
    app.pod("d", "").settle();
    app.pod("c", "canary").wish({ beta: ["prod"] });
    app.failOver();
    app.report("d").settle();
    expect(app.enforced("d").table.fenced.size + app.plan().waits.length).toBeGreaterThan(0);
    app.statusesWritten().settle();
    expect(app.plan().waits).toEqual([]);
  });
});
