import { expect, it } from "vitest";
import { MAX_FAMILY_PODS } from "../../api/sharding-config.ts";
import { planRollout, rolloutEvents } from "./plan-rollout.ts";
import { wantedPodNames } from "./roll-facts.ts";

const statefulSet = (replicas: number, start?: number) => ({
  metadata: { namespace: "ops", name: "foo", uid: "set" },
  spec: { replicas, ...(start === undefined ? {} : { ordinals: { start } }) },
});

it("a StatefulSet with billions of replicas is not rolled out, which the status and an Event say, and costs nothing", () => {
  for (const replicas of [MAX_FAMILY_PODS + 1, 3_000_000, 2 ** 31 - 1])
    expect(wantedPodNames(statefulSet(replicas))).toBeUndefined();
  const step = planRollout({
    ...{
      rollingLabel: "",
      isOnDelete: true,
      updateRevision: "new",
      wantedNames: undefined,
      record: undefined,
      previous: undefined,
    },
    shards: [""],
    pods: [],
    hasLock: true,
    pausedFields: [],
    isRestarting: false,
    soakMs: 0,
    nowMs: 0,
    refusalOf: () => undefined,
  });
  expect(step).toMatchObject({ kind: "wait", status: { done: 0, total: 0, waitingFor: "TooManyPods" } });
  expect(rolloutEvents(undefined, step)).toMatchObject([{ type: "Warning", reason: "RolloutRefused" }]);
});

it("the largest family that a root can have is rolled out", () => {
  const names = wantedPodNames(statefulSet(MAX_FAMILY_PODS, 3));
  expect([names?.length, names?.[0], names?.at(-1)]).toEqual([65 * 128, "foo-3", `foo-${65 * 128 + 2}`]);
});
