// The pods of a family, the shard of each, and the shards that have a ready pod. Pure. Invariants: a pod
// belongs to the first shard that selects it; a pod that no shard selects belongs to the default subset, owns
// nothing and stands by.

import { carriesProxy, INJECTED_LABEL } from "../../api/injected-pod.ts";
import { autoOf, type ShardingConfig, type ShardingRoot } from "../../api/sharding-config.ts";
import { canaryShardName, MAX_NORMAL_SHARDS, normalShardName, POD_NAME } from "../../api/sharding-keys.ts";
import { type Pod, REVISION_LABEL } from "../../kube/client/resources.ts";
import { type Labels, matchesSelector, termsOfSelector } from "../../kube/label-selector.ts";
import type { LabelSelector, LabelSelectorRequirement } from "../../kube/types.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import type { PodSelection } from "../apps/app.ts";
import { isReadyToStay } from "../facts/app-pods.ts";
import type { Family } from "./family.ts";
import type { StatefulSetFacts } from "./placement.ts";
import type { Shard } from "./shards.ts";
import { storedPlacement } from "./stored-placement.ts";

/** @param shards none while the shards of a root are not known */
export function familyPods({ name, root, configs }: Family, shards: readonly Shard[]): PodSelection {
  const subsetOf = (labels: Labels) => shards.find(({ pods }) => matchesSelector(pods, labels))?.name ?? DEFAULT_SUBSET;
  if (root !== undefined) return { name, ...podsOfRoot(root), subsetOf, shardOfNewPod: (labels) => shardOfNewPod(root, labels) };
  const selectors = configs.flatMap(({ spec }) => spec?.selector ?? []);
  return {
    name,
    selector: coveringSelector(selectors) ?? {},
    selects: (labels) => selectors.some((selector) => matchesSelector(selector, labels)),
    subsetOf,
    shardOfNewPod: (labels) => shards.find(({ pods }) => matchesSelector(pods, labels))?.name,
  };
}

// All pods of the StatefulSet: a pod that the root's selector left out would write everywhere, beside the shards.
// Some of them have an ordinal that no shard has yet.
function podsOfRoot({ spec }: ShardingConfig): Omit<PodSelection, "name" | "subsetOf"> {
  const statefulSet = spec?.root?.targetStatefulSet ?? "";
  return {
    selector: { matchExpressions: [{ key: POD_NAME, operator: "Exists" }] },
    statefulSet,
    checkedSelector: spec?.selector,
    selects: (labels) => ordinalOf(statefulSet, labels?.[POD_NAME] ?? "") !== undefined,
  };
}

export function ordinalOf(statefulSet: string, podName: string): number | undefined {
  const digits = podName.startsWith(`${statefulSet}-`) ? podName.slice(statefulSet.length + 1) : "";
  return /^(0|[1-9][0-9]{0,8})$/.test(digits) ? Number(digits) : undefined;
}

/**
 * The shard of a new pod by its ordinal. The stored placement may not have it yet, because a StatefulSet's
 * controller makes pods at once.
 */
function shardOfNewPod(config: ShardingConfig, labels: Labels): string | undefined {
  const { root } = config.spec ?? {};
  const ordinal = root && ordinalOf(root.targetStatefulSet, labels[POD_NAME] ?? "");
  if (root === undefined || ordinal === undefined) return undefined;
  const index = ordinal - (storedPlacement(config)?.start ?? 0);
  const { prefix, canary, auto } = root;
  const number = shardOfOrdinal(root, index);
  if (number === undefined) return index >= 0 && canary !== undefined ? canaryShardName(prefix) : undefined;
  return number <= (auto?.shardingSize ?? MAX_NORMAL_SHARDS) ? normalShardName(prefix, number) : undefined;
}

interface KnownShards {
  /** The name of the family. */
  readonly family: string;
  /** The ordinal of the StatefulSet's first pod. */
  readonly start: number;
  /** The shards that own namespaces; undefined before the first placement, which gives some to every shard. */
  readonly active: readonly number[] | undefined;
}

/**
 * The normal shards with a ready pod. While a pod without the family's proxy runs, nobody is granted what it may
 * write. So it counts for an active shard, whose namespaces no other shard could get, and not for another shard,
 * which would take namespaces from pods that work.
 */
export function readyShards(root: ShardingRoot, pods: readonly Pod[], { family, start, active }: KnownShards): Set<number> {
  const shards = pods.filter(isReadyToStay).flatMap((pod) => {
    const { name = "", labels } = pod.metadata;
    const ordinal = ordinalOf(root.targetStatefulSet, name);
    const shard = ordinal === undefined ? undefined : shardOfOrdinal(root, ordinal - start);
    if (shard === undefined) return [];
    const isMeshed = labels?.[INJECTED_LABEL] === family && carriesProxy(pod);
    const counts = isMeshed || active === undefined || active.includes(shard);
    return counts ? [shard] : [];
  });
  return new Set(shards);
}

/** The waits of a rollout that has not begun, or is paused. */
const EVICTING_NOBODY: ReadonlySet<string> = new Set(["Paused", "NotOnDelete", "NotObserved", "TooManyPods", "UnknownShard"]);

/**
 * The normal shards of which the manager has evicted a pod that is not replaced yet: by a restart, or by a
 * rollout that goes on.
 */
export function restartingShards(
  root: ShardingRoot,
  { start, replicas }: StatefulSetFacts,
  status: ShardingConfig["status"],
  pods: readonly Pod[],
): Set<number> {
  const live = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const { restart, rollout } = status ?? {};
  const ordinals: number[] = [];
  const restarted = restart === undefined ? undefined : ordinalOf(root.targetStatefulSet, restart.pod);
  if (restarted !== undefined && !live.some(({ metadata }) => metadata.uid === restart?.uid)) ordinals.push(restarted);
  if (rollout?.waitingFor !== undefined && !EVICTING_NOBODY.has(rollout.waitingFor)) {
    const byOrdinal = new Map(live.map((pod) => [ordinalOf(root.targetStatefulSet, pod.metadata.name ?? ""), pod]));
    const end = start + Math.min(replicas, (root.canary?.replicas ?? 0) + MAX_NORMAL_SHARDS * autoOf(root).everyShardReplicas);
    for (let ordinal = start; ordinal < end; ordinal++) {
      const pod = byOrdinal.get(ordinal);
      const isRolled = pod?.metadata.labels?.[REVISION_LABEL] === rollout.revision;
      if (pod === undefined || (isRolled && !isReadyToStay(pod))) ordinals.push(ordinal);
    }
  }
  return new Set(ordinals.flatMap((ordinal) => shardOfOrdinal(root, ordinal - start) ?? []));
}

/** The number of the normal shard of the pod at this index of the StatefulSet; undefined for the canary's. */
function shardOfOrdinal(root: ShardingRoot, index: number): number | undefined {
  const normal = index - (root.canary?.replicas ?? 0);
  return normal < 0 ? undefined : Math.floor(normal / autoOf(root).everyShardReplicas) + 1;
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
