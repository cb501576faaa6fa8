// The placement of a root: which normal shards own namespaces, and which namespaces each of them owns. Pure.
// Invariants: with the same members no namespace moves; a placement that is computed again from itself and
// the same facts stays the same. The placement controller stores the result before anything uses it.
import { autoOf, type ShardingRoot } from "../../api/sharding-config.ts";
import { MAX_NORMAL_SHARDS } from "../../api/sharding-keys.ts";
import { placeHash } from "../../kube/place.ts";
import { type BalancedMap, balancedMap, slotOf } from "./balanced-map.ts";
import { legacyMap } from "./legacy-map.ts";
import { type Membership, membershipOf, type ShardFacts } from "./membership.ts";

export interface Placement extends Membership {
  /** The ordinal of the StatefulSet's first pod. */
  readonly start: number;
  /** The number of normal shards that the root should have. */
  readonly shards: number;
  /** Undefined with `placement: Legacy`. */
  readonly map: BalancedMap | undefined;
}

export interface PlacementFacts extends ShardFacts {
  readonly previous: Placement | undefined;
  readonly root: Pick<ShardingRoot, "canary" | "auto" | "placement">;
  /** Undefined if it does not exist. */
  readonly statefulSet: StatefulSetFacts | undefined;
  /** The names of all namespaces but those of the canary. */
  readonly namespaces: Iterable<string>;
}

export interface StatefulSetFacts {
  readonly replicas: number;
  /** `spec.ordinals.start`. */
  readonly start: number;
}

interface PlacementStep {
  readonly placement: Placement;
  /** The time until the next change by time alone; undefined if there is none. */
  readonly againMs: number | undefined;
}

/** The placement by these facts; undefined if the number of shards is not known yet. */
export function placementOf(facts: PlacementFacts): PlacementStep | undefined {
  const { previous, root, statefulSet } = facts;
  const shards = desiredShards(root, statefulSet) ?? previous?.shards;
  if (shards === undefined) return undefined;
  const graceMs = autoOf(root).graceSeconds * 1000;
  const exists = (shard: number) => shard <= shards && hasPods(root, statefulSet, shard);
  const { againMs, ...membership } = membershipOf({ ...facts, shards, exists, graceMs });
  const start = statefulSet?.start ?? previous?.start ?? 0;
  return { placement: { start, shards, ...membership, map: mapOf(facts, membership.active) }, againMs };
}

/** Gives the number of the normal shard that owns a namespace, unless the canary owns it. */
export function placer(placement: Placement): (namespace: string) => number {
  const { map } = placement;
  if (map !== undefined) return (namespace) => map[slotOf(namespace)] ?? 0;
  const byHash = shardsByHash(placement);
  return (namespace) => byHash[placeHash(namespace)] ?? 0;
}

/** The number of the shard for every shard-hash; only for `placement: Legacy`. */
export function shardsByHash({ shards, active, losses }: Placement): number[] {
  const members = new Set([...active, ...[...losses.keys()].filter((shard) => shard <= shards)]);
  return legacyMap(
    [...members].sort((a, b) => a - b),
    active,
  );
}

function desiredShards(root: PlacementFacts["root"], statefulSet: StatefulSetFacts | undefined): number | undefined {
  const { everyShardReplicas, shardingSize } = autoOf(root);
  if (shardingSize !== undefined) return shardingSize;
  if (statefulSet === undefined) return undefined;
  const count = Math.ceil((statefulSet.replicas - (root.canary?.replicas ?? 0)) / everyShardReplicas);
  return Math.min(Math.max(count, 1), MAX_NORMAL_SHARDS);
}

/** False if the StatefulSet is too small to have a pod of the shard. */
function hasPods(root: PlacementFacts["root"], statefulSet: StatefulSetFacts | undefined, shard: number): boolean {
  if (statefulSet === undefined) return true;
  return (root.canary?.replicas ?? 0) + autoOf(root).everyShardReplicas * (shard - 1) < statefulSet.replicas;
}

function mapOf({ previous, root, namespaces }: PlacementFacts, active: readonly number[]): BalancedMap | undefined {
  if (root.placement !== "Balanced") return undefined;
  const isSame = active.length === previous?.active.length && active.every((shard, at) => shard === previous.active[at]);
  return isSame && previous.map !== undefined ? previous.map : balancedMap(previous?.map, active, namespaces);
}
