// The Legacy map of namespaces to shards: the 32 shard-hashes, cut into batches of equal size. Pure.
// Invariant: if all shards are active, it is the map that KusionStack's controller mesh makes.
import { NAME_HASHES } from "../../kube/place.ts";

/** The shard-hashes of one active shard, ascending. Empty for the last ones of 9, 10 or 12 shards. */
export function legacyBatch(active: readonly number[], shard: number): number[] {
  const size = batchSize(active);
  const at = active.indexOf(shard);
  if (at < 0) return [];
  const [start, end] = [Math.min(size * at, NAME_HASHES), Math.min(size * (at + 1), NAME_HASHES)];
  return Array.from({ length: end - start }, (_, index) => start + index);
}

/** The shard of every shard-hash. `active` is ascending and not empty. */
export function legacyMap(active: readonly number[]): number[] {
  const size = batchSize(active);
  return Array.from({ length: NAME_HASHES }, (_, hash) => active[Math.floor(hash / size)] ?? 0);
}

function batchSize(active: readonly number[]): number {
  return Math.ceil(NAME_HASHES / active.length);
}
