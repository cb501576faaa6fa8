// Which shard owns each of the other clusters that a family divides. Pure, and without memory: every replica computes the same
// owners from the same clusters and shards. Invariant: the numbers of clusters of two shards differ by at most one.
import { createHash } from "node:crypto";

/**
 * Goes through the pairs of cluster and shard by the hash of both names (rendezvous hashing), and skips shards that are full. So
 * most clusters stay when the number of shards or of clusters changes.
 * @returns the shard of each cluster; empty if there is no shard
 */
export function shareClusters(clusters: readonly string[], shards: readonly string[]): ReadonlyMap<string, string> {
  const least = Math.floor(clusters.length / shards.length);
  let withOneMore = clusters.length % shards.length;
  const counts = new Map(shards.map((shard) => [shard, 0]));
  const owners = new Map<string, string>();
  const pairs = clusters.flatMap((cluster) => shards.map((shard) => ({ cluster, shard, score: scoreOf(cluster, shard) })));
  for (const { cluster, shard } of pairs.sort((a, b) => (a.score < b.score ? 1 : -1))) {
    const count = counts.get(shard) ?? 0;
    if (owners.has(cluster) || count > least || (count === least && withOneMore === 0)) continue;
    if (count === least) withOneMore--;
    counts.set(shard, count + 1);
    owners.set(cluster, shard);
  }
  return owners;
}

function scoreOf(cluster: string, shard: string): string {
  return createHash("sha256").update(`${cluster}\n${shard}`).digest("hex");
}
