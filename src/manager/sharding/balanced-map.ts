// The Balanced map of namespaces to shards: 1024 buckets by a well-mixed hash of the name, and for each
// bucket the number of its shard. Pure. Invariants: every bucket belongs to an active shard; a bucket moves
// only if its shard leaves, or has more than its part of the namespaces or of the buckets. Called by
// placement.ts, which keeps a map as long as the same shards are active.
//
// Both parts count: namespaces, so that the load is even now, and buckets, so that it stays even when more
// namespaces come.
import { mixedHash } from "./mixed-hash.ts";

export const BUCKETS = 1024;

/** The number of a shard for every bucket. */
export type BalancedMap = Uint8Array;

/** A shard while the map is being made. */
interface Holder {
  readonly shard: number;
  /** An even part, rounded up. */
  readonly part: { readonly names: number; readonly buckets: number };
  readonly buckets: Set<number>;
  /** The namespaces in its buckets. */
  names: number;
}

/** The bucket of a namespace: the first ten bits of the hash. */
export function bucketOf(name: string): number {
  return mixedHash(name, "bucket") >>> 22;
}

/**
 * The map for these active shards (at least one), which moves little of the previous one.
 * @param names the namespaces that the map places
 */
export function balancedMap(previous: BalancedMap | undefined, active: readonly number[], names: Iterable<string>): BalancedMap {
  const counts = countNames(names);
  const part = { names: Math.ceil(sumOf(counts) / active.length), buckets: Math.ceil(BUCKETS / active.length) };
  const holders = active.map((shard): Holder => ({ shard, part, buckets: new Set(), names: 0 }));
  const byShard = new Map(holders.map((holder) => [holder.shard, holder]));
  const free: number[] = [];
  for (const bucket of counts.keys()) {
    const holder = byShard.get(previous?.[bucket] ?? 0);
    if (holder === undefined) free.push(bucket);
    else take(holder, bucket, counts);
  }
  free.push(...holders.flatMap((holder) => giveAway(holder, counts)));
  deal(free, holders, counts);
  const map = new Uint8Array(BUCKETS);
  for (const { shard, buckets } of holders) for (const bucket of buckets) map[bucket] = shard;
  return map;
}

function countNames(names: Iterable<string>): number[] {
  const counts = new Array<number>(BUCKETS).fill(0);
  for (const name of names) {
    const bucket = bucketOf(name);
    counts[bucket] = (counts[bucket] ?? 0) + 1;
  }
  return counts;
}

function take(holder: Holder, bucket: number, counts: readonly number[]): void {
  holder.buckets.add(bucket);
  holder.names += counts[bucket] ?? 0;
}

/**
 * Takes from the shard what is more than its part, each time the bucket that brings both surpluses nearest to
 * their end together.
 */
function giveAway(holder: Holder, counts: readonly number[]): number[] {
  const given: number[] = [];
  for (;;) {
    const names = Math.max(0, holder.names - holder.part.names);
    const buckets = Math.max(0, holder.buckets.size - holder.part.buckets);
    if (names === 0 && buckets === 0) return given;
    const wanted = buckets === 0 ? names : names / buckets;
    const distance = (bucket: number) => Math.abs((counts[bucket] ?? 0) - wanted);
    const bucket = least([...holder.buckets], distance);
    if (bucket === undefined || (counts[bucket] ?? 0) > names) return given;
    holder.buckets.delete(bucket);
    holder.names -= counts[bucket] ?? 0;
    given.push(bucket);
  }
}

/**
 * Deals out the free buckets, the fullest first. Full ones go where many namespaces for each bucket are
 * missing, the others where few are.
 */
function deal(free: readonly number[], holders: readonly Holder[], counts: readonly number[]): void {
  const fullestFirst = [...free].sort((a, b) => (counts[b] ?? 0) - (counts[a] ?? 0) || a - b);
  const rest = { names: sumOf(free.map((bucket) => counts[bucket] ?? 0)), buckets: free.length };
  for (const bucket of fullestFirst) {
    const count = counts[bucket] ?? 0;
    const isFull = count * rest.buckets > rest.names;
    const withRoom = holders.filter((holder) => count <= missing(holder).names);
    const holder =
      least(withRoom, (each) => (isFull ? -missingRatio(each) : missingRatio(each))) ?? least(holders, ({ names }) => names);
    if (holder !== undefined) take(holder, bucket, counts);
    rest.names -= count;
    rest.buckets--;
  }
}

function missing({ part, names, buckets }: Holder) {
  return { names: Math.max(0, part.names - names), buckets: Math.max(0, part.buckets - buckets.size) };
}

function missingRatio(holder: Holder): number {
  const { names, buckets } = missing(holder);
  return buckets === 0 ? Number.POSITIVE_INFINITY : names / buckets;
}

/** The first of the items with the lowest cost; undefined if there is none. */
function least<T>(items: readonly T[], cost: (item: T) => number): T | undefined {
  let [found, lowest]: [T | undefined, number] = [items[0], Number.POSITIVE_INFINITY];
  for (const item of items) if (cost(item) < lowest) [found, lowest] = [item, cost(item)];
  return found;
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}
