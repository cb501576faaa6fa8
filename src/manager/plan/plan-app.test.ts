// The stories that the plan of an app tells from beginning to end: rollout, undo, pause, adoption. Who may write is checked at
// every step; that no order of steps breaks it is what test/fuzz/handover.test.ts shows.
import { describe, expect, it } from "vitest";
import { modelApp } from "../../../test/support/model-app.ts";
import { appPod } from "../../../test/support/pod-facts.ts";

describe("a subset that loses a namespace", () => {
  it("goes on showing it in pods that are made anew, and writes it no more; the new owner is granted it", () => {
    const app = modelApp(["prod", "mover"], {});
    app.pod("d", "").pod("c", "canary").settle();
    app.wish({ canary: ["mover"] }).reconcile();
    app.deliver("d");
    expect(app.writers("mover")).toEqual([]);
    expect(app.reads("d", "mover")).toBe(true);
    app.settle();
    expect(app.writers("mover")).toEqual(["canary"]);
    expect(app.reads("d", "mover")).toBe(true);
    // The pod that is made in its place has never seen it.
    app.gone("d").pod("d2", "").settle();
    expect(app.reads("d2", "mover")).toBe(false);
    expect(app.enforced("d2").table.retained).toBeUndefined();
  });

  it("loses it in place with onLoss InPlace, and in a pod that nobody makes anew", () => {
    const inPlace = modelApp(["prod", "mover"], {}, { onLoss: "InPlace" });
    inPlace.pod("d", "").settle();
    inPlace.wish({ canary: ["mover"] }).settle();
    expect(inPlace.reads("d", "mover")).toBe(false);
    const alone = modelApp(["prod", "mover"], {});
    alone.pod("d", "", { controlled: false }).settle();
    alone.wish({ canary: ["mover"] }).settle();
    expect(alone.reads("d", "mover")).toBe(false);
  });

  it("does not show what was created a moment ago: a namespace that is labelled just after its birth restarts nobody", () => {
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

  it("has it again as if nothing had been, when the old spec comes back", () => {
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
    // The pod of the canary shows it now, and is the one to be restarted.
    expect(app.enforced("c").table.retained).toBeDefined();
  });

  it("shows in a pod what its subset had before its labels changed, and writes as its new subset", () => {
    const app = modelApp(["prod", "pilot"], { canary: ["pilot"] });
    app.pod("d1", "").pod("d2", "").pod("c", "canary").settle();
    app.relabel("d2", "canary").settle();
    expect(app.enforced("d2").subset).toBe("canary");
    expect([app.reads("d2", "prod"), app.reads("d2", "pilot")]).toEqual([true, true]);
    expect(app.writers("prod")).toEqual([""]);
    app.relabel("d2", "").settle();
    expect(app.reads("d2", "pilot")).toBe(true);
  });

  it("tells pods of one state one thing: equal rules are one object, and one version", () => {
    const app = modelApp(["prod", "mover"], {});
    for (const name of ["d1", "d2", "d3"]) app.pod(name, "");
    app.settle();
    app.wish({ canary: ["mover"] }).reconcile();
    app.deliver("d1"); // it shows already what d2 is about to, and what d3 is to be told
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

describe("an app that is paused", () => {
  it("moves nothing, whatever the spec says, and gives new namespaces to whom the spec gives them", () => {
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

  it("finishes what has begun to move, and is undone by the old spec without a move", () => {
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

  it("keeps owners over a failover in which a new pod comes before the old ones have reported", () => {
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

  it("goes by the spec while no pod has anything", () => {
    const app = modelApp(["prod", "pilot"], { canary: ["pilot"] });
    app.pause(true).pod("c", "canary").settle();
    expect(app.writers("pilot")).toEqual(["canary"]);
  });
});

describe("an operator that runs without the mesh", () => {
  it("is adopted pod by pod: no subset is granted anything while a pod without a proxy is left", () => {
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

  it("is left again: once the app is deleted, pods without a proxy beside it write as the default subset does", () => {
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

  it("holds back what changes hands while one is left, and takes nothing from who has it already", () => {
    const app = modelApp(["prod", "pilot", "mover"], { canary: ["pilot"] });
    app.pod("c", "canary").settle();
    app.bare("late").settle();
    app.wish({ canary: ["pilot", "mover"] }).settle();
    expect(app.enforced("c").table.fenced).toEqual(new Set(["mover"]));
    // What leaves the canary goes to the default subset, as which the pod without a proxy acts.
    app.wish({}).pod("d", "").settle();
    expect(app.writers("pilot")).toEqual([""]);
  });
});

describe("a manager that has just begun to lead", () => {
  const failedOver = () => {
    const app = modelApp(["prod", "pilot"], { canary: ["pilot"] });
    app.pod("d", "").pod("c", "canary").lateStatus("c").settle();
    app.wish({});
    app.failOver();
    return app.report("d");
  };

  it("believes no status that a pod has never started: the one before may have served it a moment ago", () => {
    const app = failedOver();
    app.settle();
    expect(app.writers("pilot")).toEqual(["canary"]);
    app.report("c").settle();
    expect(app.writers("pilot")).toEqual([""]);
  });

  it("waits no longer than a kubelet may take for pods that have never started", () => {
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
