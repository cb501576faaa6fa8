// The pods of a family, the shard of each, and the shards that have a ready pod. Pure. Invariants: a pod
// belongs to the first shard that selects it; a pod that no shard selects belongs to the default subset, owns
// nothing and stands by.
import type { ShardingConfig, ShardingRoot } from "../../api/sharding-config.ts";
import { POD_NAME } from "../../api/sharding-keys.ts";
import type { Pod } from "../../kube/client/resources.ts";
import { type Labels, matchesSelector, termsOfSelector } from "../../kube/label-selector.ts";
import type { LabelSelector, LabelSelectorRequirement } from "../../kube/types.ts";
import { DEFAULT_SUBSET } from "../../route/table.ts";
import type { PodSelection } from "../apps/app.ts";
import { isReadyToStay } from "../facts/app-pods.ts";
import type { Family } from "./family.ts";
import type { Shard } from "./shards.ts";

/** @param shards none while the shards of a root are not known */
export function familyPods({ name, root, configs }: Family, shards: readonly Shard[]): PodSelection {
  const subsetOf = (labels: Labels) => shards.find(({ pods }) => matchesSelector(pods, labels))?.name ?? DEFAULT_SUBSET;
  if (root !== undefined) return { name, ...podsOfRoot(root), subsetOf };
  const selectors = configs.flatMap(({ spec }) => spec?.selector ?? []);
  return {
    name,
    selector: coveringSelector(selectors) ?? {},
    selects: (labels) => selectors.some((selector) => matchesSelector(selector, labels)),
    subsetOf,
  };
}

/** All pods of the StatefulSet, even those with an ordinal that no shard has yet. */
function podsOfRoot({ spec }: ShardingConfig): Pick<PodSelection, "selector" | "selects"> {
  const { selector, root } = spec ?? {};
  const isOfSet = (pod = "") => ordinalOf(root?.targetStatefulSet ?? "", pod) !== undefined;
  return {
    selector: selector ?? { matchExpressions: [{ key: POD_NAME, operator: "Exists" }] },
    selects: (labels) => isOfSet(labels?.[POD_NAME]) && (selector === undefined || matchesSelector(selector, labels)),
  };
}

export function ordinalOf(statefulSet: string, podName: string): number | undefined {
  const digits = podName.startsWith(`${statefulSet}-`) ? podName.slice(statefulSet.length + 1) : "";
  return /^(0|[1-9][0-9]{0,8})$/.test(digits) ? Number(digits) : undefined;
}

/**
 * Since when each normal shard has had a ready pod, in ms.
 * @param start the ordinal of the StatefulSet's first pod
 */
export function readySince(root: ShardingRoot, start: number, pods: readonly Pod[]): Map<number, number> {
  const since = new Map<number, number>();
  for (const pod of pods) {
    const ordinal = ordinalOf(root.targetStatefulSet, pod.metadata.name ?? "");
    if (ordinal === undefined || !isReadyToStay(pod)) continue;
    const shard = shardOfOrdinal(root, ordinal - start);
    if (shard !== undefined) since.set(shard, Math.min(since.get(shard) ?? Number.POSITIVE_INFINITY, readyTime(pod)));
  }
  return since;
}

/** The normal shards of which the manager restarts a pod, by a restart or a rollout. */
export function restartingShards(root: ShardingRoot, start: number, status: ShardingConfig["status"]): Set<number> {
  const pods = [status?.restart?.pod, status?.rollout?.pod];
  const ordinals = pods.flatMap((pod = "") => ordinalOf(root.targetStatefulSet, pod) ?? []);
  return new Set(ordinals.flatMap((ordinal) => shardOfOrdinal(root, ordinal - start) ?? []));
}

/** The number of the normal shard of the pod at this index of the StatefulSet; undefined for the canary's. */
function shardOfOrdinal({ canary, auto }: ShardingRoot, index: number): number | undefined {
  const normal = index - (canary?.replicas ?? 0);
  return normal < 0 ? undefined : Math.floor(normal / auto.everyShardReplicas) + 1;
}

/** The kubelet always writes the time. Without it, the pod counts as ready since 1970. */
function readyTime({ status }: Pod): number {
  const ms = Date.parse(status?.conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime ?? "");
  return Number.isNaN(ms) ? 0 : ms;
}

/**
 * One selector that matches every pod that one of the selectors matches, and maybe other pods: the values of
 * all of them for each key that every selector restricts to listed values. Undefined if there is no such key.
 */
export function coveringSelector(selectors: readonly LabelSelector[]): LabelSelector | undefined {
  const valuesOf = selectors.map(listedValues);
  const [first = new Map<string, readonly string[]>(), ...others] = valuesOf;
  const matchExpressions = [...first.keys()]
    .filter((key) => others.every((values) => values.has(key)))
    .sort()
    .map((key): LabelSelectorRequirement => {
      const values = new Set(valuesOf.flatMap((each) => each.get(key) ?? []));
      return { key, operator: "In", values: [...values].sort() };
    });
  return matchExpressions.length === 0 ? undefined : { matchExpressions };
}

function listedValues(selector: LabelSelector): Map<string, readonly string[]> {
  const terms = termsOfSelector(selector).filter(({ operator }) => operator === "in");
  return new Map(terms.map(({ key, values }) => [key, values]));
}
