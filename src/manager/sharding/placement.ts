// The placement of a root: which normal shards own namespaces, and which namespaces each of them owns, at home and in other clusters.
// Pure.
// Invariants: a placement that is computed again from itself and the same facts stays the same; with the same
// active shards and the same root no namespace moves, unless the numbers were uneven for an hour. The placement controller stores the
// result before anything uses it.
import { autoOf, type ShardingRoot } from "../../api/sharding-config.ts";
import { MAX_NORMAL_SHARDS } from "../../api/sharding-keys.ts";
import { BUCKETS, isBucket, placeHash } from "../../kube/place.ts";
import { balancedMap, countNamespaces, loadsOf, type SlotCounts, type SlotMap, slotIn, slotOf } from "./balanced-map.ts";
import { canaryTest, firstCanaryNamespace } from "./canary.ts";
import { type AbroadCounts, countAbroad, type NamespacesAbroad, NONE_ABROAD } from "./cluster-names.ts";
import { isUneven } from "./evenness.ts";
import { legacyMap } from "./legacy-map.ts";
import { type Membership, membershipOf, numbersUpTo, type ShardFacts } from "./membership.ts";
import { joinsFrom, type Move, withMove } from "./move-budget.ts";

export interface Placement extends Membership {
  /** The ordinal of the StatefulSet's first pod. */
  readonly start: number;
  /** The number of normal shards that the root should have. */
  readonly shards: number;
  /** The moves of the last hour, the oldest first. */
  readonly moves: readonly Move[];
  /** The time before which the waiting shards do not join, because the budget of moves is used up. */
  readonly joinsFromMs: number | undefined;
  /** Since when the numbers of a Balanced map are uneven; undefined if they are even. */
  readonly unevenSinceMs: number | undefined;
  /** See firstCanaryNamespace. */
  readonly canaryNamespace: string | undefined;
  /** Undefined with `placement: Legacy`. */
  readonly map: SlotMap | undefined;
  /** The shard of every bucket of cluster-scoped names; undefined unless they are balanced too. */
  readonly clusterMap: SlotMap | undefined;
}

export interface PlacementFacts extends ShardFacts {
  readonly previous: Placement | undefined;
  readonly root: Pick<ShardingRoot, "canary" | "auto" | "placement" | "clusterScoped">;
  /** Undefined if it does not exist. */
  readonly statefulSet: StatefulSetFacts | undefined;
  /** The names of all namespaces at home. */
  readonly namespaces: readonly string[];
  /** Default: none. */
  readonly abroad?: NamespacesAbroad;
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

/** If the numbers of namespaces are uneven for this long, one shard gives namespaces to others. */
const UNEVEN_MS = 3_600_000;

/** The placement by these facts; undefined if the number of shards is not known yet. */
export function placementOf(facts: PlacementFacts): PlacementStep | undefined {
  const { previous, root, statefulSet, nowMs } = facts;
  const shards = desiredShards(root, statefulSet) ?? previous?.shards;
  if (shards === undefined) return undefined;
  const canaryNamespace = firstCanaryNamespace(root.canary, previous?.canaryNamespace, facts.namespaces);
  const isCanary = canaryTest(root.canary, canaryNamespace);
  const names = facts.namespaces.filter((name) => !isCanary(name));
  const places = root.clusterScoped === "ByName" ? [...names, ...BUCKETS.filter((bucket) => !isCanary(bucket))] : names;
  const abroad = facts.abroad ?? NONE_ABROAD;
  const abroadCounts = countAbroad(abroad, root.canary, canaryNamespace);
  const budget = {
    places: places.length + abroadCounts.total,
    percentPerHour: autoOf(root).maxMovedPercentPerHour,
  };
  const { againMs, ...membership } = membershipOf({
    ...facts,
    shards,
    exists: (shard) => shard <= shards && hasPods(root, statefulSet, shard),
    graceMs: autoOf(root).graceSeconds * 1000,
    joinsFromMs: Math.max(joinsFrom(previous?.moves ?? [], budget, nowMs), abroad.awaitedUntilMs ?? 0),
  });
  const counts = addCounts(countNamespaces(names), abroadCounts.bySlot);
  const maps = mapsOf(facts, membership.active, { counts, isComplete: abroad.isComplete }, isCanary);
  const isJudged = maps.unevenSinceMs !== undefined && abroad.isComplete;
  const untilEvenedMs = isJudged ? maps.unevenSinceMs + UNEVEN_MS - nowMs : undefined;
  const waitsMs = [againMs, untilEvenedMs].filter((ms) => ms !== undefined);
  const placed = {
    start: statefulSet?.start ?? previous?.start ?? 0,
    shards,
    ...membership,
    ...maps,
    canaryNamespace,
  };
  const moved =
    previous === undefined ? 0 : countMoved(previous, placed, places) + countMovedAbroad(previous, placed, abroadCounts);
  const moves = withMove(previous?.moves ?? [], moved, nowMs);
  const joinsFromMs = joinsFrom(moves, budget, nowMs);
  return {
    placement: { ...placed, moves, joinsFromMs: placed.waiting.size > 0 && joinsFromMs > nowMs ? joinsFromMs : undefined },
    againMs: waitsMs.length === 0 ? undefined : Math.min(...waitsMs),
  };
}

/**
 * The placement by an edited root, once all of its shards are ready. For the warning of an edit: the size of the
 * StatefulSet is taken from the present shards, and the namespaces are not read, so a Balanced map is even in slots only.
 */
export function expectedPlacement(before: ShardingRoot, root: ShardingRoot, present: Placement): Placement {
  const replicas = (before.canary?.replicas ?? 0) + autoOf(before).everyShardReplicas * present.shards;
  const sizeOf = (of: ShardingRoot) => desiredShards(of, { replicas, start: present.start }) ?? present.shards;
  const isSameSize = sizeOf(root) === sizeOf(before);
  const [shards, active] = isSameSize ? [present.shards, present.active] : [sizeOf(root), numbersUpTo(sizeOf(root))];
  const unknown = { counts: countNamespaces([]), isComplete: false };
  const maps = mapsOf({ previous: present, root, nowMs: 0 }, active, unknown, canaryTest(root.canary, present.canaryNamespace));
  return { ...present, shards, active, ...maps };
}

/** What decides who owns a place. */
type PlacementRule = Pick<Placement, "shards" | "active" | "losses" | "map" | "clusterMap">;

/**
 * Gives the number of the normal shard that owns a place, unless the canary owns it.
 * @param cluster absent at home. The hashes of Legacy are those of the names alone in each cluster.
 */
export function placer(placement: PlacementRule, cluster?: string): (place: string) => number {
  const { map, clusterMap } = placement;
  if (map === undefined) {
    const byHash = shardsByHash(placement);
    return (place) => byHash[placeHash(place)] ?? 0;
  }
  const slot = cluster === undefined ? slotOf : (name: string) => slotIn(cluster, name);
  return (place) => (isBucket(place) && clusterMap !== undefined ? clusterMap[placeHash(place)] : map[slot(place)]) ?? 0;
}

/** The number of the shard for every shard-hash; only for `placement: Legacy`. */
export function shardsByHash({ shards, active, losses }: PlacementRule): number[] {
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

type Maps = Pick<Placement, "map" | "clusterMap" | "unevenSinceMs">;

interface Counted {
  /** Without the namespaces of the canary. */
  readonly counts: SlotCounts;
  /** False: some namespaces are not in the counts, so the numbers of the shards are not judged. */
  readonly isComplete: boolean;
}

function mapsOf(
  { previous, root, nowMs }: Pick<PlacementFacts, "previous" | "root" | "nowMs">,
  active: readonly number[],
  { counts, isComplete }: Counted,
  isCanary: (place: string) => boolean,
): Maps {
  if (root.placement !== "Balanced") return { map: undefined, clusterMap: undefined, unevenSinceMs: undefined };
  const isSame = active.length === previous?.active.length && active.every((shard, at) => shard === previous.active[at]);
  const clusterCounts = Uint32Array.from(BUCKETS, (bucket) => (isCanary(bucket) ? 0 : 1));
  const clusterMap = root.clusterScoped === "ByName" ? keptMap(isSame, previous?.clusterMap, active, clusterCounts) : undefined;
  const map = keptMap(isSame, previous?.map, active, counts);
  if (!isComplete) return { map, clusterMap, unevenSinceMs: previous?.unevenSinceMs };
  const isUnevenBy = (by: SlotMap) => isUneven(loadsOf(by, active, counts));
  if (!isUnevenBy(map)) return { map, clusterMap, unevenSinceMs: undefined };
  const sinceMs = Math.min(previous?.unevenSinceMs ?? nowMs, nowMs);
  if (nowMs - sinceMs < UNEVEN_MS) return { map, clusterMap, unevenSinceMs: sinceMs };
  const evened = balancedMap(map, active, counts, 1);
  return { map: evened, clusterMap, unevenSinceMs: isUnevenBy(evened) ? nowMs : undefined };
}

function keptMap(isSame: boolean, previous: SlotMap | undefined, active: readonly number[], counts: SlotCounts): SlotMap {
  return isSame && previous !== undefined ? previous : balancedMap(previous, active, counts);
}

/** The number of places that the two placements give to different shards. */
function countMoved(before: PlacementRule, after: PlacementRule, places: readonly string[]): number {
  const [from, to] = [placer(before), placer(after)];
  return places.filter((place) => from(place) !== to(place)).length;
}

/**
 * The same for the namespaces of other clusters, by slots or hashes: there may be hundreds of thousands of names. A change between Legacy
 * and Balanced moves most of them, and counts as a move of all.
 */
function countMovedAbroad(before: PlacementRule, after: PlacementRule, { bySlot, byHash, total }: AbroadCounts): number {
  if ((before.map === undefined) !== (after.map === undefined)) return total;
  const [counts, old, next] =
    before.map === undefined ? [byHash, shardsByHash(before), shardsByHash(after)] : [bySlot, before.map, after.map ?? []];
  return counts.reduce((sum, count, at) => (old[at] === next[at] ? sum : sum + count), 0);
}

function addCounts(one: SlotCounts, other: SlotCounts): SlotCounts {
  return one.map((count, slot) => count + (other[slot] ?? 0));
}
