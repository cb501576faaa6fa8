// Which shard owns each of the other clusters that a family divides. Pure: it follows from the present owners, so that a change moves as
// few clusters as possible. Invariants: the numbers of reachable clusters of two shards differ by at most one, unless a shard may be cut
// off. A cluster that is unreachable stays with its shard. Owners that are computed from themselves stay the same, unless all shards may
// be cut off.
import { createHash } from "node:crypto";

export interface SharedCluster {
  readonly name: string;
  /** The shard that has it. Absent, or no shard any more: none has. */
  readonly owner?: string | undefined;
  /** Its shard cannot connect to it. Absent is false. */
  readonly isUnreachable?: true | undefined;
  /** Since when its shard can, in RFC 3339. Absent: always. */
  readonly reachableSince?: string | undefined;
}

/** @returns the shard of each cluster; empty if there is no shard */
export function shareClusters(clusters: readonly SharedCluster[], shards: readonly string[]): ReadonlyMap<string, string> {
  const known = new Set(shards);
  const byShard = Map.groupBy(clusters, ({ owner }) => (owner !== undefined && known.has(owner) ? owner : undefined));
  const ownOf = (shard: string) => byShard.get(shard) ?? [];
  const homeless = byShard.get(undefined) ?? [];
  const sharing = shards.filter((shard) => !mayBeCutOff(ownOf(shard)));
  const isCounted = (cluster: SharedCluster) => cluster.isUnreachable !== true && sharing.length > 0;
  const staying = shards.flatMap((shard) => ownOf(shard).map(({ name }) => [name, shard] as const));
  const loads = sharing.map((shard) => ({ shard, own: ownOf(shard).filter(isCounted) }));
  const uncounted = homeless.filter((cluster) => !isCounted(cluster));
  const byHash = uncounted.flatMap(({ name }) =>
    favourite(name, sharing.length > 0 ? sharing : shards).map((shard) => [name, shard] as const),
  );
  return new Map([...staying, ...byHash, ...balance(loads, homeless.filter(isCounted))]);
}

/**
 * True if the shard, and not its clusters, may be the cause: several of them are unreachable, and more than half. It then keeps its clusters
 * and gets no others. Otherwise it would seem idle, get those of the other shards, and lose them too.
 */
function mayBeCutOff(own: readonly SharedCluster[]): boolean {
  const unreachable = own.filter(({ isUnreachable }) => isUnreachable).length;
  return unreachable > 1 && unreachable * 2 > own.length;
}

interface ShardLoad {
  readonly shard: string;
  readonly own: readonly SharedCluster[];
}

/**
 * The clusters that get a shard: those without one, and the surplus of shards that have too many. The pairs of cluster and shard are taken in
 * the order of the hash of both names (rendezvous hashing). Of a surplus, the clusters that were unreachable last come first. So an outage
 * that comes and goes again and again moves nothing after its second round.
 */
function balance(loads: readonly ShardLoad[], homeless: readonly SharedCluster[]): ReadonlyMap<string, string> {
  const total = loads.reduce((sum, { own }) => sum + own.length, homeless.length);
  const [least, more] = [Math.floor(total / loads.length), total % loads.length];
  const full = loads.filter(({ own }) => own.length > least).sort((a, b) => b.own.length - a.own.length);
  const surplus = new Map(full.map(({ shard, own }, at) => [shard, own.length - least - (at < more ? 1 : 0)]));
  const room = new Map(loads.flatMap(({ shard, own }) => (own.length > least ? [] : [[shard, least - own.length]])));
  let withOneMore = more - Math.min(more, full.length);
  const given = full.flatMap(({ shard, own }) => ((surplus.get(shard) ?? 0) > 0 ? own : []));
  const moved = new Map<string, string>();
  for (const { cluster, from, shard } of inOrder(homeless, given, [...room.keys()])) {
    const [left, free] = [from === undefined ? 1 : (surplus.get(from) ?? 0), room.get(shard) ?? 0];
    if (moved.has(cluster) || left === 0 || free < 0 || (free === 0 && withOneMore === 0)) continue;
    if (free === 0) withOneMore--;
    if (from !== undefined) surplus.set(from, left - 1);
    room.set(shard, free - 1);
    moved.set(cluster, shard);
  }
  return moved;
}

interface Pair {
  readonly cluster: string;
  /** The shard that would give it. */
  readonly from: string | undefined;
  readonly shard: string;
}

function inOrder(
  homeless: readonly SharedCluster[],
  given: readonly SharedCluster[],
  shards: readonly string[],
): readonly Pair[] {
  const pairsOf = ({ name: cluster }: SharedCluster, from: string | undefined, since: string) =>
    shards.map((shard) => ({ cluster, from, shard, since, score: scoreOf(cluster, shard) }));
  const pairs = [
    ...homeless.flatMap((cluster) => pairsOf(cluster, undefined, "")),
    ...given.flatMap((cluster) => pairsOf(cluster, cluster.owner, cluster.reachableSince ?? "")),
  ];
  return pairs.sort((a, b) => (a.since === b.since ? descending(a.score, b.score) : descending(a.since, b.since)));
}

function descending(a: string, b: string): number {
  return a < b ? 1 : -1;
}

/** The shard with the highest score; none if there is no shard. */
function favourite(cluster: string, shards: readonly string[]): readonly string[] {
  const scored = shards.map((shard) => ({ shard, score: scoreOf(cluster, shard) }));
  return scored
    .sort((a, b) => descending(a.score, b.score))
    .slice(0, 1)
    .map(({ shard }) => shard);
}

function scoreOf(cluster: string, shard: string): string {
  return createHash("sha256").update(`${cluster}\n${shard}`).digest("hex");
}
