import { describe, expect, it } from "vitest";
import { appPod } from "../../../test/support/pod-facts.ts";
import { VIRTUAL_APP_WORDS } from "../../../test/support/source-words.ts";
import { canarySpec, createStatusWorld } from "../../../test/support/status-world.ts";
import { type AppStatus, MAX_WAITING_ON } from "../../api/app-status.ts";
import { isDissolved, planDissolution } from "../../mesh/handover/plan-dissolution.ts";
import { appStatus } from "./app-status.ts";
import { conditionOf } from "./facts.ts";
import { WAIT_REASONS } from "./waits.ts";

const NAMESPACES = ["prod", "pilot", "extra"];
const world = () => {
  const made = createStatusWorld(canarySpec(["pilot"], { onLoss: "InPlace" }), NAMESPACES, [
    appPod("a0"),
    appPod("a1"),
    appPod("c0", "canary"),
  ]);
  expect(conditionOf(made.settle(), "Converged")).toMatchObject({ status: "True" });
  return made;
};
const edit = (made: ReturnType<typeof world>, owned: readonly string[]) => {
  made.spec = canarySpec(owned, { onLoss: "InPlace" });
  made.generation++;
};
const both = (status: AppStatus) => [conditionOf(status, "Ready")?.status, conditionOf(status, "Converged")?.status];

describe("a deletion in the status", () => {
  it("names a pod that has not started: the finalizer stays until the pod has its routes or is gone", () => {
    const pods = [appPod("pending", "", { running: false, ready: false })];
    const factsOf = () => undefined;
    const app = { namespace: "shop", name: "app" };
    const plan = planDissolution({ app, words: VIRTUAL_APP_WORDS, pods, factsOf, lockName: "lock", namespaces: ["n"] });
    expect(isDissolved(plan, pods, factsOf)).toBe(false);
    const look = (previous: AppStatus | undefined, now: string) =>
      appStatus({ generation: 2, previous, pods, factsOf, plan, version: 1, lockName: "lock", words: VIRTUAL_APP_WORDS, now });
    const first = look(undefined, "2026-01-01T00:00:00.000Z");
    const waitingOn = [{ pod: "pending", reason: "NotStarted" }];
    expect(first.handover).toMatchObject({ phase: "Dissolving", done: 0, total: 1, waitingOn });
    const later = look(first, "2026-01-01T10:00:00.000Z");
    expect(conditionOf(later, "Ready")).toMatchObject({ status: "False", reason: "NotStarted" });
  });
});

describe("a handover in the status", () => {
  it("is Draining, then Granting, then the last handover, and Converged is False until then", () => {
    const made = world();
    edit(made, ["pilot", "extra"]);
    const first = made.reconcile();
    expect(first.handover).toMatchObject({
      from: "",
      to: "canary",
      phase: "Draining",
      done: 0,
      total: 2,
      namespaces: 1,
      waitingOn: [
        { namespace: "extra", pod: "a0", reason: "NotAcknowledged" },
        { namespace: "extra", pod: "a1", reason: "NotAcknowledged" },
      ],
    });
    expect(first.namespaces?.moving).toBe(1);
    expect(both(first)).toEqual(["True", "False"]);
    expect(conditionOf(first, "Ready")?.reason).toBe("Draining");

    made.nowMs += 200;
    made.ack("a0", "c0");
    expect(made.reconcile().handover).toMatchObject({ phase: "Draining", done: 1, total: 2, waitingOn: [{ pod: "a1" }] });

    made.nowMs += 200;
    made.ack("a1");
    const granting = made.reconcile();
    expect(granting.handover).toMatchObject({
      from: "",
      to: "canary",
      phase: "Granting",
      done: 0,
      total: 1,
      waitingOn: [{ pod: "c0" }],
    });
    expect(granting.namespaces?.moving).toBe(1);
    expect(both(granting)).toEqual(["True", "False"]);

    made.nowMs += 350;
    made.ack("a0", "a1", "c0");
    const done = made.reconcile();
    expect(done.handover).toBeUndefined();
    expect(done.lastHandover).toEqual({
      from: "",
      to: "canary",
      namespaces: 1,
      finishedAt: "2026-01-01T00:00:00.750Z",
      noWriterSeconds: 0.75,
      result: "Moved",
    });
    expect(both(done)).toEqual(["True", "True"]);
    expect(made.reconcile()).toEqual(done);
  });

  it("has the result Undone if it is undone while it runs", () => {
    const made = world();
    edit(made, ["pilot", "extra"]);
    made.reconcile();
    made.ack("a0");
    made.nowMs += 1_000;
    edit(made, ["pilot"]);
    expect(made.settle().lastHandover).toMatchObject({ from: "", to: "canary", result: "Undone" });
  });

  it("is not Converged after an undo while its snapshot is on its way", () => {
    const made = world();
    edit(made, ["pilot", "extra"]);
    made.reconcile();
    edit(made, ["pilot"]);
    expect(conditionOf(made.reconcile(), "Converged")?.status).toBe("False");
    expect(conditionOf(made.settle(), "Converged")?.status).toBe("True");
  });

  it("continues in a new manager with its start time, also before the proxies have registered", () => {
    const made = world();
    edit(made, ["pilot", "extra"]);
    const { handover } = made.reconcile();
    made.ack("a0", "c0");
    made.forget();
    made.nowMs += 20_000;
    const blind = made.reconcile();
    expect(blind.handover).toMatchObject({ phase: "Draining", since: handover?.since, from: "", to: "canary" });
    expect(conditionOf(blind, "Converged")).toMatchObject({ status: "Unknown", reason: "Rebuilding" });
    expect(blind.subsets?.find(({ name }) => name === "canary")?.waitingSince).toBe("2026-01-01T00:00:00.000Z");
    made.registration("a0", "a1", "c0");
    expect(made.settle().lastHandover).toMatchObject({ namespaces: 1, noWriterSeconds: 20, result: "Moved" });
  });

  it("is shown by the next manager if it began while no manager ran", () => {
    const made = world();
    made.forget();
    edit(made, ["pilot", "extra"]);
    made.registration("a0", "a1", "c0");
    expect(made.reconcile().handover).toMatchObject({ phase: "Draining", namespaces: 1 });
    expect(made.settle().lastHandover).toMatchObject({ namespaces: 1, result: "Moved" });
  });

  it("is found from the pods' snapshots if the manager crashed before it wrote the status", () => {
    const made = world();
    const before = made.status;
    edit(made, ["pilot", "extra"]);
    made.reconcile();
    made.ack("a0", "a1", "c0");
    made.status = before;
    const found = made.reconcile();
    expect(found.handover).toMatchObject({ to: "canary", phase: "Granting" });
    expect(found.namespaces?.moving).toBe(1);
    expect(made.settle().lastHandover).toMatchObject({ to: "canary", namespaces: 1 });
  });

  it("counts no time without a writer while a pod without a proxy may write", () => {
    const made = createStatusWorld(canarySpec([]), NAMESPACES, [
      appPod("bare", "", { proxy: "none" }),
      appPod("c0", "canary"),
      appPod("d0"),
    ]);
    made.settle();
    edit(made, ["pilot"]);
    const waiting = made.reconcile();
    expect(conditionOf(waiting, "Ready")).toMatchObject({ status: "False", reason: "NotIntercepted" });
    expect(waiting.handover).toMatchObject({
      from: "",
      to: "canary",
      waitingOn: [{ pod: "bare", reason: "NoProxy" }, { pod: "d0" }],
    });
    expect(conditionOf(waiting, "Converged")).toMatchObject({
      status: "False",
      reason: "PodsWithoutProxy",
      message: expect.stringContaining("pod bare carries no proxy and may write everywhere: restart it to have it injected"),
    });
    made.ack("c0", "d0");
    made.nowMs += 3_600_000;
    made.reconcile();
    made.pods.delete("bare");
    made.nowMs += 1_000;
    made.reconcile();
    made.nowMs += 250;
    expect(made.settle().lastHandover).toMatchObject({ noWriterSeconds: 0.25 });
  });

  it("names at most eight pods, the longest waits first, and a row that returns keeps its age", () => {
    const many = Array.from({ length: 20 }, (_, index) => appPod(`a${String(index).padStart(2, "0")}`));
    const made = createStatusWorld(canarySpec([]), NAMESPACES, [...many, appPod("c0", "canary")]);
    made.settle();
    edit(made, ["extra"]);
    made.reconcile();
    made.nowMs += 30_000;
    made.ack(...many.slice(0, 8).map(({ name }) => name));
    const rows = made.reconcile().handover?.waitingOn ?? [];
    expect(rows).toHaveLength(MAX_WAITING_ON);
    expect(rows[0]).toMatchObject({ pod: "a08", since: "2026-01-01T00:00:00Z" });
    expect(made.status?.handover).toMatchObject({ done: 8, total: 20 });
  });

  it("names both subsets if it goes in both directions, and so does the last handover", () => {
    const made = world();
    edit(made, ["extra"]);
    expect(made.reconcile().handover).toMatchObject({ phase: "Draining", between: ["", "canary"] });
    const { lastHandover } = made.settle();
    expect(lastHandover).toMatchObject({ namespaces: 2, between: ["", "canary"], result: "Moved" });
    edit(made, ["extra", "pilot"]);
    const oneWay = made.settle().lastHandover;
    expect(oneWay).toMatchObject({ from: "", to: "canary", namespaces: 1 });
    expect(oneWay?.between).toBeUndefined();
  });

  it("names a pod whose proxy crashes before its operator starts, if an earlier manager may have sent it routes", () => {
    const made = world();
    made.pods.set("x", appPod("x", "", { ready: false, unstarted: true }));
    made.forget();
    made.registration("a0", "a1", "c0");
    edit(made, ["pilot", "extra"]);
    made.reconcile();
    made.ack("a0", "a1");
    made.nowMs += 10_000;
    const stuck = made.reconcile();
    expect(stuck.namespaces?.moving).toBe(1);
    expect(stuck.handover?.waitingOn).toMatchObject([{ namespace: "extra", pod: "x", reason: "NotStarted" }]);
    expect(conditionOf(stuck, "Converged")).toMatchObject({
      status: "False",
      reason: "Moving",
      message: expect.stringContaining("extra waits for pod x"),
    });
    made.nowMs += 300_000;
    const message = expect.stringContaining("to do: check why its containers do not start");
    expect(conditionOf(made.reconcile(), "Ready")).toMatchObject({ status: "False", reason: "NotStarted", message });
    made.pods.set("x", appPod("x", "", { running: false, ready: false, unstarted: true }));
    expect(made.settle().lastHandover).toMatchObject({ from: "", to: "canary", namespaces: 1 });
  });

  it("names a proxy that has not reported for over a minute, and leaves no last handover if nothing moved", () => {
    const made = world();
    made.forget();
    made.registration("a0", "a1");
    expect(made.reconcile().handover).toBeUndefined();
    made.nowMs += 60_000;
    const silent = made.reconcile();
    expect(silent.handover?.waitingOn).toMatchObject([{ pod: "c0", reason: "NotReported", since: "2026-01-01T00:00:00Z" }]);
    expect(conditionOf(silent, "Converged")).toMatchObject({
      reason: "Rebuilding",
      message: "the proxy of pod c0 has not connected yet, over 1 min: nothing new is granted before",
    });
    made.registration("c0");
    const after = made.settle();
    expect([after.handover, after.lastHandover]).toEqual([undefined, undefined]);
  });

  it("has a bounded size, for any number of moving namespaces", () => {
    const names = Array.from({ length: 2_000 }, (_, index) => `tenant-${index}`);
    const made = createStatusWorld(canarySpec([]), names, [appPod("a0"), appPod("c0", "canary")]);
    made.settle();
    edit(made, ["tenant-.*"]);
    const moving = made.reconcile();
    expect(moving.namespaces?.moving).toBe(2_000);
    expect(JSON.stringify(moving).length).toBeLessThan(4_000);
    expect(made.settle().lastHandover).toMatchObject({ namespaces: 2_000 });
  });
});

describe("a restart in the status", () => {
  const restart = { subset: "", pod: "a0", uid: "uid-a0", since: "2026-01-01T00:00:00Z", left: 2, reason: "Evicting" } as const;

  it("comes after the recorded move, with the reason and the message of the restarter", () => {
    const made = world();
    edit(made, ["pilot", "extra"]);
    made.settle();
    made.restart = { ...restart, reason: "PodDisruptionBudget", message: "PodDisruptionBudget shop/pdb allows no disruption" };
    const status = made.reconcile();
    expect(status.lastHandover).toMatchObject({ namespaces: 1 });
    expect(status.restart).toEqual(made.restart);
    expect(status.handover).toMatchObject({ phase: "Restarting", from: "", done: 0, total: 2, waitingOn: [{ pod: "a0" }] });
    expect(conditionOf(status, "Converged")).toMatchObject({
      status: "False",
      reason: "Restarting",
      message: "namespaces have moved, 2 pods to restart: PodDisruptionBudget shop/pdb allows no disruption",
    });
    made.restart = { ...restart, left: 1 };
    expect(made.reconcile().handover).toMatchObject({ done: 1, total: 2 });
    made.restart = { ...restart, left: 0, reason: "NotReady", message: "pod a0 is gone and 1 of 2 pods are ready" };
    made.nowMs += 15_000;
    expect(conditionOf(made.reconcile(), "Converged")?.message).toBe(
      "namespaces have moved; the replacement of the last restarted pod is not ready yet: pod a0 is gone and 1 of 2 pods are ready (has waited for more than 10 s)",
    );
    made.restart = undefined;
    const over = made.reconcile();
    expect(over.handover).toBeUndefined();
    expect(over.lastHandover).toEqual(status.lastHandover);
    expect(both(over)).toEqual(["True", "True"]);
  });

  it("has the phase Paused while the app is paused", () => {
    const made = world();
    made.restart = { ...restart, reason: "Paused" };
    expect(conditionOf(made.reconcile(), "Converged")).toMatchObject({
      reason: "Paused",
      message: "paused: 2 pods wait for a restart; set spec.route.paused to false to go on",
    });
  });
});

it("a pause shows the number of kept namespaces, and Converged is False", () => {
  const made = world();
  made.spec = canarySpec(["pilot", "extra"], { onLoss: "InPlace", paused: true });
  made.generation++;
  const status = made.settle();
  expect(status.handover).toMatchObject({ phase: "Paused", namespaces: 1 });
  expect(status.namespaces).toMatchObject({ kept: 1, moving: 0 });
  expect(conditionOf(status, "Converged")).toMatchObject({
    status: "False",
    reason: "Paused",
    message: "paused: 1 namespace stays with another owner than the rules give it; set spec.route.paused to false to go on",
  });
  expect(conditionOf(status, "Ready")).toMatchObject({ status: "True", reason: "Paused" });
  expect(WAIT_REASONS).not.toContain(conditionOf(status, "Ready")?.reason);
});
