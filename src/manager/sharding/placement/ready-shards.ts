// Which normal shards of a root have a ready pod. Pure. Used by the placement reconciler.
import type { ShardingRoot } from "../../../api/sharding-config.ts";
import type { Pod } from "../../../kube/client/resources.ts";
import { isReadyToStay } from "../../facts/ready-pod.ts";
import { ordinalOf } from "../pod-ordinal.ts";

/**
 * The numbers of the normal shards with a ready pod.
 * @param start the ordinal of the StatefulSet's first pod
 */
export function readyShards(root: ShardingRoot, start: number, pods: readonly Pod[]): Set<number> {
  const numbers = new Set<number>();
  for (const pod of pods) {
    const ordinal = ordinalOf(root.targetStatefulSet, pod.metadata.name ?? "");
    if (ordinal === undefined || !isReadyToStay(pod)) continue;
    const index = ordinal - start - (root.canary?.replicas ?? 0);
    if (index >= 0) numbers.add(Math.floor(index / root.auto.everyShardReplicas) + 1);
  }
  return numbers;
}
