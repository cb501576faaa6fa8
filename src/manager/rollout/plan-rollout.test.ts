import { describe, expect, it } from "vitest";
import { planRollout, type RolloutStep, rolloutEvents } from "./plan-rollout.ts";
import type { RolloutFacts, RollPod } from "./roll-facts.ts";

const NOW = 1_000_000;
const CANARY = "foo-0-canary";
const [FIRST, SECOND] = ["foo-1-normal", "foo-2-normal"];

/** A ready pod with the old revision and a connected proxy. */
const pod = (number: number, shard: string, more: Partial<RollPod> = {}): RollPod => ({
  name: `foo-${number}`,
  uid: `uid-${number}`,
  shard,
  revision: "old",
  isLeader: false,
  enforcedShard: shard,
  isReady: true,
  isUnschedulable: false,
  readySinceMs: 0,
  isTerminating: false,
  hasProxy: true,
  isConnected: true,
  isAcknowledged: true,
  ...more,
});
const leader = { isLeader: true };
const done = { revision: "new" };
const gone = (pods: readonly RollPod[], ...names: string[]) => pods.filter(({ name }) => !names.includes(name));
const withPod = (pods: readonly RollPod[], name: string, more: Partial<RollPod>) =>
  pods.map((each) => (each.name === name ? { ...each, ...more } : each));

const PODS = [pod(0, CANARY, leader), pod(1, FIRST, leader), pod(2, FIRST), pod(3, SECOND), pod(4, SECOND, leader)];
const NAMES = PODS.map(({ name }) => name);

const facts = (pods: readonly RollPod[], more: Partial<RolloutFacts> = {}): RolloutFacts => ({
  rollingLabel: "",
  isOnDelete: true,
  updateRevision: "new",
  wantedNames: NAMES,
  record: undefined,
  previous: undefined,
  shards: [CANARY, FIRST, SECOND, ""],
  canary: CANARY,
  shardOf: (name) => PODS.find((each) => each.name === name)?.shard ?? "",
  pods,
  hasLock: true,
  pausedFields: [],
  isRestarting: false,
  soakMs: 0,
  refusalOf: () => undefined,
  nowMs: NOW,
  ...more,
});
const plan = (pods: readonly RollPod[], more: Partial<RolloutFacts> = {}) => planRollout(facts(pods, more));
const line = (step: RolloutStep) =>
  step.kind === "off"
    ? "off"
    : [step.kind, step.status.waitingFor, step.status.pod].filter((part) => part !== undefined).join(" ");
const recordOf = (step: RolloutStep) => (step.kind === "off" ? undefined : step.record);

/** Carries the steps out at once, and returns the order of the restarts. */
function roll(start: readonly RollPod[], more: Partial<RolloutFacts> = {}): string[] {
  let [pods, record] = [start, more.record];
  const order: string[] = [];
  for (let turn = 0; turn < 50; turn++) {
    const step = plan(pods, { ...more, record });
    record = recordOf(step);
    if (step.kind !== "evict") return [...order, line(step)];
    order.push(step.pod.name);
    const led = step.pod.isLeader;
    pods = withPod(pods, step.pod.name, { revision: record?.podRevision[step.pod.name] ?? "", isLeader: false });
    const [heir] = pods.filter((each) => each.shard === step.pod.shard && each.revision === "new");
    if (led && heir !== undefined) pods = withPod(pods, heir.name, leader);
  }
  return order;
}

describe("planRollout, in order", () => {
  it("restarts the canary first, then the shards by number, and the leader of each last", () => {
    expect(roll(PODS)).toEqual(["foo-0", "foo-2", "foo-1", "foo-3", "foo-4", "done"]);
  });
  it("counts in numbers: shard 10 comes after shard 9, and pod 10 after pod 9", () => {
    const shards = ["foo-9-normal", "foo-10-normal"];
    const pods = [pod(10, "foo-9-normal"), pod(9, "foo-9-normal"), pod(11, "foo-10-normal")];
    const wantedNames = pods.map(({ name }) => name);
    expect(roll(pods, { shards, wantedNames, hasLock: false })).toEqual(["foo-9", "foo-10", "foo-11", "done"]);
  });
  it("restarts only the shards that the label names, in their order", () => {
    expect(roll(PODS, { rollingLabel: `${SECOND}_${CANARY}` })).toEqual(["foo-0", "foo-3", "foo-4", "done"]);
    expect(roll(PODS, { rollingLabel: "normal" })).toEqual(["foo-2", "foo-1", "foo-3", "foo-4", "done"]);
    expect(line(plan(PODS, { rollingLabel: "foo-7-normal" }))).toBe("wait UnknownShard");
    expect(roll(PODS, { rollingLabel: "all" })).toHaveLength(6);
  });
  it("restarts pods that belong to no shard last", () => {
    const pods = [pod(0, "", leader), ...gone(PODS, "foo-0")];
    expect(roll(pods).slice(-2)).toEqual(["foo-0", "done"]);
  });
  it("does nothing without the label, and records nothing for another update strategy", () => {
    expect(plan(PODS, { rollingLabel: undefined })).toEqual({ kind: "off" });
    const step = plan(PODS, { isOnDelete: false, record: { updateRevision: "old", podRevision: {} } });
    expect([line(step), recordOf(step)]).toEqual(["wait NotOnDelete", undefined]);
    expect(step).toMatchObject({ status: { message: expect.stringContaining("set spec.updateStrategy.type to OnDelete") } });
  });
  it("waits until the StatefulSet's controller has seen its spec", () => {
    expect(line(plan(PODS, { updateRevision: undefined }))).toBe("wait NotObserved");
  });
});

describe("planRollout, after a pod", () => {
  const rolled = (more: Partial<RollPod>) => withPod(PODS, "foo-0", { ...done, ...more });

  it("waits until the pod is gone, exists again, is ready, has its routes and its shard leads", () => {
    expect(line(plan(withPod(PODS, "foo-0", { isTerminating: true, isReady: false })))).toBe("wait NotReady foo-0");
    expect(plan(gone(PODS, "foo-0"))).toMatchObject({
      status: { waitingFor: "NotReady", message: "pod foo-0 does not exist yet" },
    });
    expect(line(plan(rolled({ isReady: false })))).toBe("wait NotReady foo-0");
    expect(line(plan(rolled({ isConnected: false })))).toBe("wait NotAcknowledged foo-0");
    expect(line(plan(rolled({ isAcknowledged: false })))).toBe("wait NotAcknowledged foo-0");
    expect(plan(rolled({ isLeader: false }))).toMatchObject({ status: { waitingFor: "LeaderUnknown", done: 1, total: 5 } });
    expect(line(plan(rolled({})))).toBe("evict Evicting foo-2");
  });
  it("needs no leader of an operator without a lock", () => {
    expect(line(plan(rolled({ isLeader: false }), { hasLock: false }))).toBe("evict Evicting foo-2");
  });
  it("stops at a new pod without the proxy or in another shard than its ordinal's, ready or not, and says what to do", () => {
    const bare = { hasProxy: false, isConnected: false, isAcknowledged: false, isLeader: false, enforcedShard: undefined };
    expect(plan(rolled(bare))).toMatchObject({
      kind: "wait",
      status: {
        waitingFor: "NotInjected",
        pod: "foo-0",
        message:
          "pod foo-0 has the new revision and no proxy of this family, so it may write everywhere: restart it to have it injected",
      },
    });
    expect(line(plan(rolled({ ...bare, isReady: false })))).toBe("wait NotInjected foo-0");
    expect(plan(rolled({ enforcedShard: SECOND }))).toMatchObject({
      kind: "wait",
      status: {
        waitingFor: "OtherShard",
        pod: "foo-0",
        message: `the proxy of pod foo-0 enforces shard ${SECOND} and not ${CANARY}`,
      },
    });
    expect(line(plan(rolled({ enforcedShard: undefined })))).toBe("evict Evicting foo-2");
    expect(line(plan(rolled(bare), { updateRevision: "newest", hasLock: false }))).toBe("evict Evicting foo-0");
    expect(line(plan(withPod(PODS, "foo-3", bare)))).toBe("evict Evicting foo-0");
  });
  it("waits for the soak time since the last pod of the shards before became ready", () => {
    const soaking = plan(rolled({ readySinceMs: NOW - 4_000 }), { soakMs: 10_000 });
    expect(soaking).toMatchObject({ kind: "wait", recheckMs: 6_000, status: { waitingFor: "Soaking" } });
    expect(line(plan(rolled({ readySinceMs: NOW - 10_000 }), { soakMs: 10_000 }))).toBe("evict Evicting foo-2");
    const within = withPod(rolled({ readySinceMs: 0 }), "foo-2", { ...done, readySinceMs: NOW });
    expect(line(plan(within, { soakMs: 10_000 }))).toBe("evict Evicting foo-1");
  });
  it("does not know the leader of a shard whose proxy is silent, and looks for one for 30 seconds before the first pod", () => {
    const silent = withPod(PODS, "foo-0", { isConnected: false });
    expect(line(plan(silent))).toBe("wait NotReported foo-0");
    const young = withPod(PODS, "foo-0", { isLeader: false, readySinceMs: NOW - 10_000 });
    expect(plan(young)).toMatchObject({ kind: "wait", recheckMs: 20_000, status: { waitingFor: "LeaderUnknown" } });
    expect(line(plan(withPod(PODS, "foo-0", { isLeader: false, readySinceMs: NOW - 30_000 })))).toBe("evict Evicting foo-0");
  });
  it("is done only when the last pod is ready, and a pod that is created or unready later begins nothing", () => {
    const all = PODS.map((each) => ({ ...each, ...done }));
    const last = withPod(all, "foo-4", { isReady: false });
    const previous = { revision: "new", done: 3, total: 5, waitingFor: "Evicting" };
    expect(line(plan(last, { previous }))).toBe("wait NotReady foo-4");
    expect(line(plan(all, { previous }))).toBe("done");
    expect(plan(last)).toMatchObject({ kind: "done", status: { done: 4, total: 5 } });
    expect(line(plan(gone(all, "foo-4"), { previous: { revision: "new", done: 5, total: 5 } }))).toBe("done");
  });
});

describe("planRollout, beside pods that have trouble", () => {
  const unready = { isReady: false, readySinceMs: undefined };
  const TROUBLES: [string, (pods: readonly RollPod[], name: string) => readonly RollPod[]][] = [
    ["is not ready", (pods, name) => withPod(pods, name, unready)],
    ["is ending", (pods, name) => withPod(pods, name, { ...unready, isTerminating: true })],
    ["does not exist", gone],
  ];

  it.each(TROUBLES)("restarts the shards that the label names, whatever a pod of another shard does that %s", (_, trouble) => {
    expect(roll(trouble(PODS, "foo-1"), { rollingLabel: CANARY })).toEqual(["foo-0", "done"]);
    expect(roll(trouble(PODS, "foo-0"), { rollingLabel: SECOND })).toEqual(["foo-3", "foo-4", "done"]);
  });
  it.each(TROUBLES)("restarts the canary and the shards before a pod that %s", (_, trouble) => {
    const order = roll(trouble(PODS, "foo-3"));
    expect(order.slice(0, 3)).toEqual(["foo-0", "foo-2", "foo-1"]);
    expect(roll(trouble(PODS, "foo-4")).slice(0, 3)).toEqual(["foo-0", "foo-2", "foo-1"]);
  });
  it("counts the pods of the shards that the label names, and the missing ones too", () => {
    expect(plan(PODS, { rollingLabel: CANARY })).toMatchObject({ status: { done: 0, total: 1 } });
    expect(plan(gone(PODS, "foo-1", "foo-2", "foo-3"), { rollingLabel: SECOND })).toMatchObject({
      status: { done: 0, total: 2 },
    });
  });
  it("restarts pods that no node takes last, except the canary's, so that they hold no other pod back", () => {
    const pending = { ...unready, isUnschedulable: true, hasProxy: false, isConnected: false, isLeader: false };
    const order = roll(withPod(withPod(PODS, "foo-1", pending), "foo-2", { isLeader: true }));
    expect(order).toEqual(["foo-0", "foo-2", "foo-3", "foo-4", "foo-1", "done"]);
    const injected = { ...pending, hasProxy: true };
    const last = withPod(
      PODS.map((each) => ({ ...each, ...done })),
      "foo-1",
      injected,
    );
    expect(line(plan(last, { previous: { revision: "new", done: 4, total: 5, waitingFor: "Evicting" } }))).toBe(
      "wait NotReady foo-1",
    );
    expect(line(plan(withPod(PODS, "foo-0", { ...injected, ...done })))).toBe("wait NotReady foo-0");
    const step = plan(withPod(PODS, "foo-0", { ...injected, ...done }));
    expect(step).toMatchObject({ status: { message: "pod foo-0 is not ready: no node takes it" } });
  });
});

describe("planRollout, interrupted", () => {
  it("stops for a pause and for a restart that has begun, and goes on", () => {
    const begun = withPod(PODS, "foo-0", done);
    expect(line(plan(begun, { pausedFields: ["spec.paused"] }))).toBe("wait Paused foo-2");
    expect(line(plan(begun, { isRestarting: true }))).toBe("wait Restarting foo-2");
    expect(line(plan(begun))).toBe("evict Evicting foo-2");
  });
  it("names the fields that pause it, and how to go on", () => {
    const messageOf = (...pausedFields: string[]) => {
      const step = plan(PODS, { pausedFields });
      return step.kind === "off" ? undefined : step.status.message;
    };
    expect(messageOf("spec.root.rollout.paused")).toBe(
      "5 pods wait for the new revision: set spec.root.rollout.paused to false to go on",
    );
    expect(messageOf("spec.paused", "spec.root.rollout.paused")).toBe(
      "5 pods wait for the new revision: set spec.paused and spec.root.rollout.paused to false to go on",
    );
    expect(plan([pod(0, CANARY)], { wantedNames: ["foo-0"], pausedFields: ["spec.paused"] })).toMatchObject({
      status: { message: "1 pod waits for the new revision: set spec.paused to false to go on" },
    });
  });
  it("waits as long as the API server asks after the refusal of a PodDisruptionBudget", () => {
    const refusal = { reason: "PodDisruptionBudget", message: "pod foo-0 may not be evicted now", retryAtMs: NOW + 500 } as const;
    const refusalOf = (uid: string) => (uid === "uid-0" ? refusal : undefined);
    expect(plan(PODS, { refusalOf })).toMatchObject({
      kind: "wait",
      recheckMs: 500,
      status: { waitingFor: "PodDisruptionBudget", pod: "foo-0", message: refusal.message },
    });
    expect(line(plan(PODS, { refusalOf, nowMs: NOW + 500 }))).toBe("evict PodDisruptionBudget foo-0");
  });
  it("records a pod's new revision before its eviction, and keeps the others at theirs", () => {
    const record = {
      updateRevision: "new",
      podRevision: { "foo-0": "new", "foo-1": "old", "foo-2": "old", "foo-3": "old", "foo-4": "old" },
    };
    expect(recordOf(plan(PODS))).toEqual(record);
    const deleted = plan(gone(withPod(PODS, "foo-0", done), "foo-1"), { record });
    expect([line(deleted), recordOf(deleted)]).toEqual(["wait NotReady foo-2", record]);
  });
  it("requests the same eviction again after a crash, even if the pod has become the leader", () => {
    const record = { updateRevision: "new", podRevision: { "foo-0": "new", "foo-1": "new" } };
    const again = plan(withPod(PODS, "foo-0", done), { record, soakMs: 2 * NOW });
    expect([line(again), again]).toEqual(["evict Evicting foo-1", expect.objectContaining({ isFirst: false })]);
  });
  it("begins anew with the canary when the revision changes midway, also with pods of the one before", () => {
    const record = {
      updateRevision: "new",
      podRevision: { "foo-0": "new", "foo-1": "old", "foo-2": "new", "foo-3": "old", "foo-4": "old" },
    };
    const pods = withPod(PODS, "foo-0", done);
    const step = plan(pods, { record, updateRevision: "newest" });
    expect(line(step)).toBe("evict Evicting foo-0");
    expect(recordOf(step)).toEqual({
      updateRevision: "newest",
      podRevision: { ...record.podRevision, "foo-0": "newest", "foo-2": "old" },
    });
  });
  it("replaces a revision whose pods never become ready, and a return to the old revision ends at once", () => {
    const broken = withPod(PODS, "foo-0", {
      ...done,
      isReady: false,
      readySinceMs: undefined,
      isConnected: false,
      isLeader: false,
    });
    expect(line(plan(broken))).toBe("wait NotReady foo-0");
    expect(line(plan(broken, { updateRevision: "newest", hasLock: false }))).toBe("evict Evicting foo-0");
    const record = { updateRevision: "new", podRevision: { "foo-0": "new" } };
    expect(line(plan(broken, { updateRevision: "old", record, hasLock: false }))).toBe("evict Evicting foo-0");
    expect(line(plan(PODS, { updateRevision: "old", record }))).toBe("done");
  });
  it("follows the size of the StatefulSet", () => {
    const record = recordOf(plan(PODS));
    const smaller = plan(gone(PODS, "foo-4"), { record, wantedNames: NAMES.slice(0, 4) });
    expect([line(smaller), recordOf(smaller)?.podRevision]).toEqual([
      "evict Evicting foo-0",
      expect.not.objectContaining({ "foo-4": "old" }),
    ]);
    const larger = plan(PODS, { record: { updateRevision: "new", podRevision: {} }, wantedNames: [...NAMES, "foo-5"] });
    expect(larger).toMatchObject({ kind: "evict", status: { total: 6, pod: "foo-0" } });
  });
});

describe("rolloutEvents", () => {
  const statusOf = (step: RolloutStep) => (step.kind === "off" ? undefined : step.status);
  const reasons = (before: RolloutStep | undefined, step: RolloutStep) =>
    rolloutEvents(before && statusOf(before), step).map(({ reason }) => reason);
  const all = plan(PODS.map((each) => ({ ...each, ...done })));

  it("report the start, the first pod of each shard, and the end, each once", () => {
    const first = plan(PODS);
    expect(reasons(undefined, first)).toEqual(["RolloutStarted", "RolloutShard"]);
    const waiting = plan(gone(PODS, "foo-0"));
    expect(reasons(first, waiting)).toEqual([]);
    const second = plan(withPod(PODS, "foo-0", done));
    expect(reasons(waiting, second)).toEqual(["RolloutShard"]);
    expect(reasons(second, plan(withPod(withPod(PODS, "foo-0", done), "foo-2", done)))).toEqual([]);
    expect(reasons(second, all)).toEqual(["RolloutFinished"]);
    expect(reasons(all, all)).toEqual([]);
    expect(reasons(undefined, all)).toEqual([]);
  });
  it("report a refusal once", () => {
    const refused = plan(PODS, { isOnDelete: false });
    expect(reasons(all, refused)).toEqual(["RolloutRefused"]);
    expect(reasons(refused, refused)).toEqual([]);
    expect(reasons(refused, plan(PODS))).toEqual(["RolloutStarted", "RolloutShard"]);
  });
});
