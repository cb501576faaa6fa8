// Decides which normal shards of a root own namespaces, and which namespaces each of them owns. Pure.
// Invariants: at least one shard is active; as long as the same shards are active, no namespace moves; equal
// facts give an equal placement, even when it is the previous one. The placement controller stores the result
// in an annotation of the root before anything uses it.
//
// A shard that is not active becomes active when one of its pods is ready. An active shard leaves immediately
// if the StatefulSet or the spec no longer has it. It leaves if none of its pods has been ready for the grace
// time while another shard was. If no shard would be left, all stay.
import { DEFAULT_GRACE_SECONDS, type ShardingRoot } from "../../api/sharding-config.ts";
import { MAX_NORMAL_SHARDS } from "../../api/sharding-keys.ts";
import { placeHash } from "../../kube/place.ts";
import { type BalancedMap, balancedMap, slotOf } from "./balanced-map.ts";
import { legacyMap } from "./legacy-map.ts";

export interface Placement {
  /** The ordinal of the StatefulSet's first pod. */
  readonly start: number;
  /** The number of normal shards that the root should have. */
  readonly shards: number;
  /** The numbers of the normal shards that own namespaces, ascending. */
  readonly active: readonly number[];
  /** Active shards without a ready pod, and since when, in ms. */
  readonly away: ReadonlyMap<number, number>;
  /** With `placement: Balanced` only. */
  readonly map: BalancedMap | undefined;
}

export interface PlacementFacts {
  readonly previous: Placement | undefined;
  readonly root: Pick<ShardingRoot, "canary" | "auto" | "placement">;
  /** Undefined if it does not exist. */
  readonly statefulSet: StatefulSetFacts | undefined;
  /** The numbers of the normal shards with a ready pod. */
  readonly readyShards: ReadonlySet<number>;
  /** The names of all namespaces but those of the canary. */
  readonly namespaces: Iterable<string>;
  readonly nowMs: number;
}

export interface StatefulSetFacts {
  readonly replicas: number;
  /** `spec.ordinals.start`. */
  readonly start: number;
}

export interface PlacementStep {
  readonly placement: Placement;
  /** The time until the grace time of a shard ends; undefined if nothing is due. */
  readonly againMs: number | undefined;
}

/** The placement by these facts; undefined if the number of shards is not known yet. */
export function placementOf(facts: PlacementFacts): PlacementStep | undefined {
  const { previous, root, statefulSet, readyShards, nowMs } = facts;
  const shards = desiredShards(root, statefulSet) ?? previous?.shards;
  if (shards === undefined) return undefined;
  const graceMs = (root.auto.graceSeconds ?? DEFAULT_GRACE_SECONDS) * 1000;
  const awaySince = (shard: number) => Math.min(previous?.away.get(shard) ?? nowMs, nowMs);
  const exists = (shard: number) => shard <= shards && hasPods(root, statefulSet, shard);
  const before = previous?.active ?? upTo(shards);
  // While no shard is ready, nobody could take over, so no time counts.
  const isServed = [...readyShards].some(exists);
  const isLost = (shard: number) => isServed && !readyShards.has(shard) && nowMs - awaySince(shard) >= graceMs;
  const active = upTo(MAX_NORMAL_SHARDS).filter(
    (shard) => exists(shard) && (before.includes(shard) ? !isLost(shard) : readyShards.has(shard)),
  );
  if (active.length === 0) active.push(...before);

  const unready = isServed ? active.filter((shard) => !readyShards.has(shard)) : [];
  const away = new Map(unready.map((shard) => [shard, awaySince(shard)]));
  const ends = [...away.values()].map((sinceMs) => sinceMs + graceMs - nowMs);
  const start = statefulSet?.start ?? previous?.start ?? 0;
  const placement = { start, shards, active, away, map: mapOf(facts, active) };
  return { placement, againMs: ends.length === 0 ? undefined : Math.min(...ends) };
}

/** The number of the normal shard that owns a namespace which is not the canary's. */
export function placer({ active, map }: Placement): (namespace: string) => number {
  if (map !== undefined) return (namespace) => map[slotOf(namespace)] ?? 0;
  const legacy = legacyMap(active);
  return (namespace) => legacy[placeHash(namespace)] ?? 0;
}

function desiredShards({ auto, canary }: PlacementFacts["root"], statefulSet: StatefulSetFacts | undefined): number | undefined {
  if (auto.shardingSize !== undefined) return auto.shardingSize;
  if (statefulSet === undefined) return undefined;
  const count = Math.ceil((statefulSet.replicas - (canary?.replicas ?? 0)) / auto.everyShardReplicas);
  return Math.min(Math.max(count, 1), MAX_NORMAL_SHARDS);
}

/** False if the StatefulSet is too small to have a pod of the shard. */
function hasPods({ auto, canary }: PlacementFacts["root"], statefulSet: StatefulSetFacts | undefined, shard: number): boolean {
  if (statefulSet === undefined) return true;
  return (canary?.replicas ?? 0) + auto.everyShardReplicas * (shard - 1) < statefulSet.replicas;
}

function mapOf({ previous, root, namespaces }: PlacementFacts, active: readonly number[]): BalancedMap | undefined {
  if (root.placement !== "Balanced") return undefined;
  const isSame = active.length === previous?.active.length && active.every((shard, at) => shard === previous.active[at]);
  return isSame && previous.map !== undefined ? previous.map : balancedMap(previous?.map, active, namespaces);
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}
