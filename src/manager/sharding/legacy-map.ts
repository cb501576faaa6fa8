// The Legacy map of namespaces to shards: the 32 shard-hashes, cut into batches of equal size. Pure.
// Invariants: if all shards are active, it is the map that KusionStack's controller mesh makes; a shard that is
// lost moves its own hashes and no others.
import { NAME_HASHES } from "../../kube/place.ts";
import { mixedHash } from "./mixed-hash.ts";

/**
 * The shard of every shard-hash.
 * @param members the shards that have batches, ascending: the active ones, and those that are lost and may return
 * @param active not empty
 */
export function legacyMap(members: readonly number[], active: readonly number[]): number[] {
  const size = Math.ceil(NAME_HASHES / members.length);
  return Array.from({ length: NAME_HASHES }, (_, hash) => {
    const own = members[Math.floor(hash / size)] ?? 0;
    return active.includes(own) ? own : standIn(hash, active);
  });
}

/** The shard that has the hash of a lost one. By rendezvous hashing, so it stays while it is active. */
function standIn(hash: number, active: readonly number[]): number {
  const rank = (shard: number) => mixedHash(`${hash}/${shard}`, "stand-in");
  return active.reduce((best, shard) => (rank(shard) > rank(best) ? shard : best));
}
