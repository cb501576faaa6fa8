// The Legacy map of namespaces to shards: the 32 shard-hashes, cut into batches of one size (the last may be
// smaller). Pure. Invariants: if all shards are active, it is the map that KusionStack's controller mesh
// makes; if a shard is lost, only its own hashes move.
import { NAME_HASHES } from "../../kube/place.ts";
import { mixedHash } from "./mixed-hash.ts";

/**
 * The shard of every shard-hash.
 * @param members the shards that have batches, ascending: the active ones, and lost ones that may return
 * @param active not empty
 */
export function legacyMap(members: readonly number[], active: readonly number[]): number[] {
  const size = Math.ceil(NAME_HASHES / members.length);
  return Array.from({ length: NAME_HASHES }, (_, hash) => {
    const own = members[Math.floor(hash / size)] ?? 0;
    return active.includes(own) ? own : standIn(hash, active);
  });
}

/** The active shard that serves a hash of a lost shard. By rendezvous hashing, it changes only if it is lost too, or if a shard of a higher rank joins. */
function standIn(hash: number, active: readonly number[]): number {
  const rank = (shard: number) => mixedHash(`${hash}/${shard}`, "stand-in");
  return active.reduce((best, shard) => (rank(shard) > rank(best) ? shard : best));
}
