// Which shard owns each other cluster, by the spec of a root and its placement. Pure. The config must be valid.
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { normalShardName } from "../../api/sharding-keys.ts";
import { matchesSelector } from "../../kube/label-selector.ts";
import { CLUSTER_SCOPE } from "../../kube/place.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import type { AppSpec } from "../apps/app.ts";
import type { ChosenClusters } from "../apps/chosen-clusters.ts";
import type { ClusterFacts, RouteSpec } from "../apps/compile/route-spec.ts";
import { type SharedCluster, shareClusters } from "./cluster-shares.ts";
import type { Placement } from "./placement.ts";

interface PlacedShards {
  /** The names of all shards, the canary first if there is one. */
  readonly names: readonly string[];
  readonly placement: Placement | undefined;
}

/**
 * Empty if the root divides no clusters. The normal shards that own namespaces share them, the canary owns none. The default subset has
 * no pods of shards, so the clusters that it owns are closed to all of them.
 */
export function clusterRulesIn(
  { metadata, spec: { root } }: ShardingConfig,
  shards: PlacedShards,
): Pick<AppSpec, "clusterOwners" | "clusterRoute" | "decisionKeys" | "missingDecision"> {
  const { clusterSelector, clustersFrom } = root ?? {};
  const decisionKey = clustersFrom?.placementDecision;
  if (clusterSelector === undefined && decisionKey === undefined) return {};
  const [canary] = root?.canary === undefined ? [] : shards.names;
  const sharing = activeSubsets(root, shards).filter((name) => name !== DEFAULT_SUBSET && name !== canary);
  const isSelected = ({ labels }: ClusterFacts) => matchesSelector(clusterSelector ?? {}, labels);
  const isMissing = (chosen: ChosenClusters) => decisionKey !== undefined && !chosen.has(decisionKey);
  const ownerOf = ({ owners }: ClusterFacts) => {
    const owner = owners?.get(metadata.name ?? "");
    return owner === DEFAULT_SUBSET ? undefined : owner;
  };
  const isShared = (cluster: ClusterFacts, chosen: ChosenClusters) => {
    if (decisionKey === undefined) return true;
    // Without the PlacementDecision, the clusters stay shared that are shared already.
    return chosen.get(decisionKey)?.has(cluster.name) ?? ownerOf(cluster) !== undefined;
  };
  const sharedCluster = (cluster: ClusterFacts): SharedCluster => ({ ...cluster, owner: ownerOf(cluster) });
  return {
    clusterOwners: (clusters, chosen) => {
      const selected = clusters.filter(isSelected);
      const shared = selected.filter((cluster) => isShared(cluster, chosen)).map(sharedCluster);
      const closed = selected.map(({ name }) => [name, DEFAULT_SUBSET] as const);
      return new Map([...closed, ...shareClusters(shared, sharing)]);
    },
    clusterRoute: (_, owner) => wholeClusterRoute(owner),
    decisionKeys: decisionKey === undefined ? [] : [decisionKey],
    missingDecision: (cluster, chosen) => (isSelected(cluster) && isMissing(chosen) ? decisionKey : undefined),
  };
}

/** The rules inside a cluster whose namespaces are divided: its shard owns all of them, and what is in no namespace. */
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
export function activeSubsets(root: ShardingConfig["spec"]["root"], { names, placement }: PlacedShards): readonly string[] {
  const { prefix = "", canary } = root ?? {};
  const active = new Set(placement?.active.map((number) => normalShardName(prefix, number)));
  return [DEFAULT_SUBSET, ...names.filter((name, at) => active.has(name) || (canary !== undefined && at === 0))];
}
