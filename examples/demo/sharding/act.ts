// The second act: a StatefulSet that shards itself, and is scaled while it writes.
import type { Act } from "../act.ts";
import { lookAt } from "./facts.ts";
import { readFamily } from "./family.ts";
import { keepPods } from "./stateful-set.ts";
import { divide, judge, scaleWhileWriting } from "./steps.ts";
import { type Facts, factLines } from "./view.ts";

const MORE_PODS = 2;

export function readShardingAct(): Act<Facts> {
  const family = readFamily();
  const { setting, statefulSet, replicas, podOf } = family;
  const grown = replicas + MORE_PODS;
  return {
    setting,
    opening: `Starting an API server (localkube), ctrlmesh-manager, and the ${replicas} pods of the StatefulSet ${statefulSet}`,
    roles:
      "No cluster and no containers: the demo plays the StatefulSet controller and the kubelet. It runs each pod as two processes, the operator and its proxy, and reports it Ready.",
    pods: Array.from({ length: replicas }, (_, ordinal) => podOf(ordinal)),
    introduce: (started) => started.map(({ name, subset }) => `shard ${subset}: ${name}`),
    look: lookAt,
    draw: factLines,
    play: (world, signal) => keepPods(world, family, signal),
    steps: [divide(family), scaleWhileWriting(family, replicas, grown), scaleWhileWriting(family, grown, replicas)],
    sumUp: judge(family, [replicas, grown, replicas]),
    resource: "shardingconfigs",
    next: "The third act, an operator that deletes too much: npm run demo -- traffic",
  };
}
