import { describe, expect, it } from "vitest";
import { appPod } from "../../../test/support/pod-facts.ts";
import { canarySpec, createStatusWorld } from "../../../test/support/status-world.ts";
import { conditionOf } from "./facts.ts";
import { nextLookMs } from "./status-feed.ts";

const made = (...more: ReturnType<typeof appPod>[]) => {
  const world = createStatusWorld(
    canarySpec([], { onLoss: "InPlace" }),
    ["prod", "pilot"],
    [appPod("a0"), appPod("c0", "canary"), ...more],
  );
  world.settle();
  return world;
};
const DENIED = { lockName: "lock---canary", resource: "leases.coordination.k8s.io", deniedVerbs: ["get"], reason: "" };
const moving = (report: object) => {
  const world = made();
  world.spec = canarySpec(["pilot"], { onLoss: "InPlace" });
  world.generation++;
  world.reports.set("a0", report);
  world.reconcile();
  return world;
};
/** Computes the status whenever it is due, like the reconciler, and returns the conditions. */
const messagesFor = (world: ReturnType<typeof made>, seconds: number) => {
  const end = world.nowMs + seconds * 1000;
  const messages: string[] = [];
  for (;;) {
    const message = conditionOf(world.reconcile(), "Converged")?.message ?? "";
    if (messages.at(-1) !== message) messages.push(message);
    const ms = world.status && nextLookMs(world.status, new Date(world.nowMs).toISOString());
    if (ms === undefined || world.nowMs + ms > end) return messages;
    world.nowMs += ms;
  }
};

describe("a wait", () => {
  it("is reported with its age and its cause, in few messages even if it lasts long", () => {
    const world = moving({ backlog: { heldNamespaces: 0, drainingWrites: 1 } });
    const messages = messagesFor(world, 4 * 24 * 3600);
    expect(messages.slice(0, 3)).toEqual([
      "1 namespace moves: pilot waits for pod a0: 1 write in flight",
      "1 namespace moves: pilot waits for pod a0, over 10 s: 1 write in flight",
      "1 namespace moves: pilot waits for pod a0, over 30 s: 1 write in flight",
    ]);
    expect(messages).toHaveLength(9);
  });

  it("makes Ready False after five minutes, and the message names the remedy", () => {
    const world = moving({ connected: false });
    world.nowMs += 299_000;
    expect(conditionOf(world.reconcile(), "Ready")?.reason).not.toBe("NotConnected");
    world.nowMs += 1_000;
    expect(conditionOf(world.reconcile(), "Ready")).toMatchObject({
      status: "False",
      reason: "NotConnected",
      message:
        "pilot waits for pod a0, over 5 min: its proxy is not connected and may still write; to do: check that its node is reachable; its claim ends with the pod: delete the pod if it does not come back",
    });
  });

  it("names the lost node and the command, if Kubernetes has deleted the pod because of its node", () => {
    const world = moving({ connected: false });
    world.nowMs += 300_000;
    world.pods.set("a0", appPod("a0", "", { ready: false, terminating: true, leftNode: "node-3" }));
    expect(conditionOf(world.reconcile(), "Ready")).toMatchObject({
      status: "False",
      reason: "NotConnected",
      message:
        "pilot waits for pod a0, over 5 min: its node node-3 does not answer, and it may still write; to do: make sure that node node-3 is off, then run: kubectl delete pod a0 -n shop --force",
    });
  });

  it("keeps its age when its cause changes", () => {
    const world = moving({ backlog: { heldNamespaces: 0, drainingWrites: 2 } });
    world.nowMs += 200_000;
    world.reports.set("a0", { connected: false });
    world.reconcile();
    world.nowMs += 100_000;
    expect(conditionOf(world.reconcile(), "Ready")).toMatchObject({ status: "False", reason: "NotConnected" });
  });

  it.each([
    ["SnapshotRefused", { problems: { routes: ["too old"] } }, { connected: false }],
    ["OwnershipConflict", {}, { connected: false }],
    ["LockDenied", { lock: DENIED }, { connected: false }],
    ["LockNotNamed", { unnamedLock: { lockName: "op", resource: "configmaps" } }, { connected: false }],
  ])("is in the message of Ready with its remedy after five minutes, if the reason is %s", (reason, other, stuck) => {
    const world = moving(stuck);
    world.reports.set("c0", other);
    if (reason === "OwnershipConflict") world.pods.set("x", appPod("x", "", { proxy: "other-app", running: false }));
    world.nowMs += 299_000;
    expect(conditionOf(world.reconcile(), "Ready")?.message).not.toContain("; to do: ");
    world.nowMs += 1_000;
    expect(conditionOf(world.reconcile(), "Ready")).toMatchObject({
      status: "False",
      reason,
      message: expect.stringMatching(
        /; pilot waits for pod a0, over 5 min: its proxy is not connected .*; to do: check that its node/,
      ),
    });
  });

  it("also makes Ready False if a PodDisruptionBudget forbids a restart", () => {
    const world = made();
    const restart = { subset: "", pod: "a0", uid: "uid-a0", left: 1, reason: "PodDisruptionBudget", message: "no disruption" };
    world.restart = { ...restart, since: "2026-01-01T00:00:00Z" };
    world.reconcile();
    world.nowMs += 300_000;
    expect(conditionOf(world.reconcile(), "Ready")).toMatchObject({
      status: "False",
      reason: "PodDisruptionBudget",
      message: expect.stringContaining("to do: run one more replica, or allow one disruption"),
    });
  });
});

describe("a new manager", () => {
  it("keeps the previous Ready until the proxies have had time to reconnect", () => {
    const world = made();
    world.forget();
    const blind = world.reconcile();
    expect(conditionOf(blind, "Ready")).toMatchObject({ status: "True", reason: "Rebuilding" });
    expect(conditionOf(blind, "Converged")).toMatchObject({ status: "Unknown", reason: "Rebuilding" });
    world.nowMs += 60_000;
    expect(conditionOf(world.reconcile(), "Ready")).toMatchObject({ status: "False", reason: "ProxiesBehind" });
    world.nowMs += 240_000;
    expect(conditionOf(world.reconcile(), "Ready")).toMatchObject({
      status: "False",
      reason: "NotReported",
      message: expect.stringContaining("waits for pod a0, over 5 min: its proxy has not connected yet; to do: "),
    });
  });

  it("does not report Ready for a generation that no manager has reconciled", () => {
    const world = made();
    world.forget();
    world.generation++;
    expect(conditionOf(world.reconcile(), "Ready")).toMatchObject({ status: "False", reason: "ProxiesBehind" });
  });
});

describe("a disconnected proxy", () => {
  it("is lost after a minute, even if it is in sync", () => {
    const world = made();
    world.reports.set("c0", { connected: false });
    expect(conditionOf(world.reconcile(), "Ready")).toMatchObject({ status: "True" });
    expect(world.status?.proxies).toMatchObject({ total: 2, connected: 1, synced: 2, awaySince: "2026-01-01T00:00:00Z" });
    expect(world.status && nextLookMs(world.status, new Date(world.nowMs).toISOString())).toBe(60_000);
    world.nowMs += 60_000;
    expect(conditionOf(world.reconcile(), "Ready")).toMatchObject({
      status: "False",
      reason: "ProxyLost",
      message:
        'the proxy of pod c0 of subset "canary" has been disconnected for over 1 min: it keeps its routes, and the next change waits for it',
    });
    world.reports.delete("c0");
    expect(conditionOf(world.reconcile(), "Ready")?.status).toBe("True");
    expect(world.status?.proxies?.awaySince).toBeUndefined();
  });

  it("does not count if its pod is terminating", () => {
    const world = made(appPod("a1"));
    world.pods.set("a1", appPod("a1", "", { terminating: true }));
    world.reports.set("a1", { connected: false });
    expect(world.reconcile().proxies?.awaySince).toBeUndefined();
  });
});

it("a pod that has not started does not affect Ready or Converged", () => {
  const world = made();
  world.pods.set("a1", appPod("a1", "", { running: false, ready: false }));
  world.forget();
  world.registration("a0", "c0");
  const status = world.reconcile();
  expect(status.proxies).toMatchObject({ total: 3, synced: 2 });
  expect([conditionOf(status, "Ready")?.status, conditionOf(status, "Converged")?.status]).toEqual(["True", "True"]);
});

it("a pod without a proxy beside a subset that owns something is a conflict", () => {
  const world = made();
  world.spec = canarySpec(["pilot"], { onLoss: "InPlace" });
  world.settle();
  world.pods.set("bare", appPod("bare", "", { proxy: "none" }));
  const status = world.reconcile();
  expect(status.namespaces?.conflicting).toBe(1);
  expect(conditionOf(status, "Ready")).toMatchObject({
    status: "False",
    reason: "OwnershipConflict",
    message: "pod bare carries no proxy and may write to 1 namespace that other subsets own: restart it to have it injected",
  });
});
