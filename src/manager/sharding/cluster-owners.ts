// Which shard owns each other cluster, or each namespace of it, by the spec of a root and its placement. Pure. The config must be valid.
// Invariant: one placement decides at home and in all clusters, so a cluster that comes or goes changes the owner of no other namespace.
import type { ShardingConfig, ShardingRoot } from "../../api/sharding-config.ts";
import { normalShardName } from "../../api/sharding-keys.ts";
import { rememberNames } from "../../base/remember.ts";
import { matchesSelector } from "../../kube/label-selector.ts";
import { CLUSTER_SCOPE } from "../../kube/place.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import type { AppSpec } from "../apps/app.ts";
import type { ChosenClusters } from "../apps/chosen-clusters.ts";
import type { ClusterFacts, RouteSpec } from "../apps/compile/route-spec.ts";
import { type SharedCluster, shareClusters } from "./cluster-shares.ts";
import type { Placement } from "./placement.ts";
import { routeOfShards } from "./shard-rules.ts";
import type { FamilyShards } from "./shards.ts";

interface PlacedShards {
  /** The shards of the root, the canary first if there is one; undefined while they are not placed. */
  readonly family: FamilyShards | undefined;
  readonly placement: Placement | undefined;
}

export function shardNames(family: FamilyShards | undefined): readonly string[] {
  return (family?.shards ?? []).map(({ name }) => name);
}

/**
 * Empty if the root divides no clusters. The normal shards that own namespaces share them, the canary owns none. The default subset has
 * no pods of shards, so the clusters that it owns are closed to all of them.
 */
export function clusterRulesIn(
  config: ShardingConfig,
  placed: PlacedShards,
): Pick<AppSpec, "clusterOwners" | "clusterRoute" | "decisionKeys" | "missingDecision"> {
  const { root } = config.spec;
  if (root === undefined) return {};
  const { isSelected, isShared, ownerOf, decisionKey, dividesNone } = selectionOf(config);
  if (dividesNone) return {};
  const [canary] = root.canary === undefined ? [] : shardNames(placed.family);
  const sharing = activeSubsets(root, placed).filter((name) => name !== DEFAULT_SUBSET && name !== canary);
  const isInside = (cluster: ClusterFacts) => dividesInside(root, cluster);
  const { family } = placed;
  // The same object for the same rules, so that what is compiled from it is remembered.
  const whole = rememberNames(wholeClusterRoute);
  const inside = rememberNames((cluster) => rememberNames((owner) => family && routeInside(family, cluster, owner)));
  return {
    clusterOwners: (clusters, chosen) => {
      const selected = clusters.filter(isSelected);
      const [divided, others] = partition(
        selected.filter((cluster) => isShared(cluster, chosen)),
        isInside,
      );
      const closed = selected.map(({ name }) => [name, DEFAULT_SUBSET] as const);
      const shared = others.map((cluster): SharedCluster => ({ ...cluster, owner: ownerOf(cluster) }));
      // Their owners have little to do, whether the cluster can be reached or not.
      const scopes = divided.map((cluster): SharedCluster => ({ name: cluster.name, owner: ownerOf(cluster) }));
      return new Map([...closed, ...shareClusters(shared, sharing), ...shareClusters(scopes, sharing)]);
    },
    clusterRoute: (cluster, owner) =>
      (owner !== DEFAULT_SUBSET && isInside(cluster) ? inside(cluster.name)(owner) : undefined) ?? whole(owner),
    decisionKeys: decisionKey === undefined ? [] : [decisionKey],
    missingDecision: (cluster, chosen) =>
      isSelected(cluster) && decisionKey !== undefined && !chosen.has(decisionKey) ? decisionKey : undefined,
  };
}

/** The clusters whose namespaces the shards divide. */
export function clustersInside<T extends ClusterFacts>(
  config: ShardingConfig,
  clusters: readonly T[],
  chosen: ChosenClusters,
): readonly T[] {
  const { root } = config.spec;
  const { isSelected, isShared, dividesNone } = selectionOf(config);
  if (root === undefined || dividesNone) return [];
  return clusters.filter((each) => dividesInside(root, each) && isSelected(each) && isShared(each, chosen));
}

function dividesInside({ clustersBy }: ShardingRoot, { upstream }: ClusterFacts): boolean {
  return clustersBy === "Namespace" && upstream !== undefined;
}

/** Which clusters the root divides. */
function selectionOf({ metadata, spec: { root } }: ShardingConfig) {
  const { clusterSelector, clustersFrom } = root ?? {};
  const decisionKey = clustersFrom?.placementDecision;
  /** A shard; undefined if the cluster has none. */
  const ownerOf = ({ owners }: ClusterFacts) => {
    const owner = owners?.get(metadata.name ?? "");
    return owner === DEFAULT_SUBSET ? undefined : owner;
  };
  return {
    decisionKey,
    dividesNone: clusterSelector === undefined && decisionKey === undefined,
    ownerOf,
    isSelected: ({ labels }: ClusterFacts) => matchesSelector(clusterSelector ?? {}, labels),
    isShared: (cluster: ClusterFacts, chosen: ChosenClusters) => {
      if (decisionKey === undefined) return true;
      // While the PlacementDecision is missing, those clusters are shared that have an owner.
      return chosen.get(decisionKey)?.has(cluster.name) ?? ownerOf(cluster) !== undefined;
    },
  };
}

function partition<T>(items: readonly T[], isFirst: (item: T) => boolean): readonly [readonly T[], readonly T[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}

/** The rules inside a cluster whose namespaces the shards own as at home. @param owner of what is in no namespace */
function routeInside(family: FamilyShards, cluster: string, owner: string): RouteSpec {
  const shardOf = family.shardIn?.(cluster);
  return routeOfShards({ ...family, home: owner, ...(shardOf && { shardOf }) });
}

/** The rules inside a cluster whose requests the proxies serve: its shard owns all of them, and what is in no namespace. */
export function wholeClusterRoute(owner: string): RouteSpec {
  const members = owner === DEFAULT_SUBSET ? [] : [0];
  return {
    rules: members.map(() => ({ kind: "subset", subset: owner, resources: [], origin: "spec.root.clusterSelector" })),
    sharedResources: [],
    places: [[CLUSTER_SCOPE, members]],
    expressions: [],
    membersOf: () => members,
  };
}

/** The limit of moves does not keep namespaces with a shard that is lost. */
export function activeSubsets(root: ShardingConfig["spec"]["root"], { family, placement }: PlacedShards): readonly string[] {
  const names = shardNames(family);
  const { prefix = "", canary } = root ?? {};
  const active = new Set(placement?.active.map((number) => normalShardName(prefix, number)));
  return [DEFAULT_SUBSET, ...names.filter((name, at) => active.has(name) || (canary !== undefined && at === 0))];
}
