import { expect, it } from "vitest";
import { proxyFacts } from "../../../test/support/pod-facts.ts";
import { MAX_FAMILY_PODS } from "../../api/sharding-config.ts";
import type { Pod } from "../../kube/client/resources.ts";
import type { Snapshot } from "../../mesh/ownership/snapshot.ts";
import { planRollout, rolloutEvents } from "./plan-rollout.ts";
import { rollPods, wantedPodNames } from "./roll-facts.ts";

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
    canary: undefined,
    shardOf: () => "",
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

it("a pod belongs to the shard of its name, whatever its labels say, and its proxy to the shard that it enforces", () => {
  const labels = { "statefulset.kubernetes.io/pod-name": "foo-7", "ctrlmesh.kruise.io/virtual-app-injected": "shop" };
  const ownerReferences = [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "foo", uid: "set", controller: true }];
  const pod = { metadata: { namespace: "ops", name: "foo-1", labels, ownerReferences } } as unknown as Pod;
  const acknowledged = { subset: "foo-7-normal" } as unknown as Snapshot;
  const app = { ref: { kind: "ShardingConfig", namespace: "ops", name: "shop" } };
  const pods = rollPods(
    app,
    (name) => `${name}-normal`,
    statefulSet(2),
    [pod],
    () => proxyFacts({ acknowledged }),
  );
  expect(pods).toMatchObject([{ shard: "foo-1-normal", enforcedShard: "foo-7-normal", hasProxy: true, isUnschedulable: false }]);
});

it("the largest family that a root can have is rolled out", () => {
  const names = wantedPodNames(statefulSet(MAX_FAMILY_PODS, 3));
  expect([names?.length, names?.[0], names?.at(-1)]).toEqual([65 * 128, "foo-3", `foo-${65 * 128 + 2}`]);
});
