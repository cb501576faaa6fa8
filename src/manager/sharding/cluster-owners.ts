// Which shard owns each other cluster, by the spec of a root and its placement. Pure. The config must be valid.
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { normalShardName } from "../../api/sharding-keys.ts";
import { matchesSelector } from "../../kube/label-selector.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import type { AppSpec } from "../apps/app.ts";
import { shareClusters } from "./cluster-shares.ts";
import type { Placement } from "./placement.ts";

interface PlacedShards {
  /** The names of all shards, the canary first if there is one. */
  readonly names: readonly string[];
  readonly placement: Placement | undefined;
}

/** Undefined if the root divides no clusters. The normal shards that own namespaces share them, the canary owns none. */
export function clusterOwnersBy({ spec: { root } }: ShardingConfig, shards: PlacedShards): AppSpec["clusterOwners"] {
  const selector = root?.clusterSelector;
  if (selector === undefined) return undefined;
  const [canary] = root?.canary === undefined ? [] : shards.names;
  const sharing = activeSubsets(root, shards).filter((name) => name !== DEFAULT_SUBSET && name !== canary);
  return (clusters) => {
    const selected = clusters.flatMap(({ name, labels }) => (matchesSelector(selector, labels) ? [name] : []));
    // Without a shard they stay closed to the pods of all shards.
    return shareClusters(selected, sharing.length === 0 ? [DEFAULT_SUBSET] : sharing);
  };
}

/** The limit of moves does not keep namespaces with a shard that is lost. */
export function activeSubsets(root: ShardingConfig["spec"]["root"], { names, placement }: PlacedShards): readonly string[] {
  const { prefix = "", canary } = root ?? {};
  const active = new Set(placement?.active.map((number) => normalShardName(prefix, number)));
  return [DEFAULT_SUBSET, ...names.filter((name, at) => active.has(name) || (canary !== undefined && at === 0))];
}
