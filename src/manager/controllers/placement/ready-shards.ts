// Which normal shards of a root have a ready pod. Pure. Used by the placement reconciler.
import type { ShardingRoot } from "../../../api/sharding-config.ts";
import type { Pod } from "../../../kube/client/resources.ts";

/** The ordinal of a pod of the StatefulSet; undefined for any other pod. */
export function ordinalOf(statefulSet: string, podName: string): number | undefined {
  const digits = podName.startsWith(`${statefulSet}-`) ? podName.slice(statefulSet.length + 1) : "";
  return /^(0|[1-9][0-9]{0,8})$/.test(digits) ? Number(digits) : undefined;
}

/**
 * The numbers of the normal shards with a ready pod.
 * @param start the ordinal of the StatefulSet's first pod
 */
export function readyShards(root: ShardingRoot, start: number, pods: readonly Pod[]): Set<number> {
  const numbers = new Set<number>();
  for (const pod of pods) {
    const ordinal = ordinalOf(root.targetStatefulSet, pod.metadata.name ?? "");
    if (ordinal === undefined || !isReady(pod)) continue;
    const index = ordinal - start - (root.canary?.replicas ?? 0);
    if (index >= 0) numbers.add(Math.floor(index / root.auto.everyShardReplicas) + 1);
  }
  return numbers;
}

/** A terminating pod counts as gone. */
export function isReady({ metadata, status }: Pod): boolean {
  if (metadata.deletionTimestamp !== undefined) return false;
  return status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ?? false;
}
