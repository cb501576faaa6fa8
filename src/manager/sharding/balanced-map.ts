// The Balanced map of namespaces to shards: 1,024 slots by a well-mixed hash of the name, and for each slot
// the number of its shard. Pure. Invariants: every slot belongs to an active shard; a slot moves only if its
// shard leaves, or has more than its part of the namespaces or of the slots.
//
// Both parts count: namespaces, so that the load is even now, and slots, so that it stays even when more
// namespaces come.
import { mixedHash } from "./mixed-hash.ts";

export const SLOTS = 1024;

/** The number of a shard for every slot. */
export type BalancedMap = Uint8Array;

interface Holder {
  readonly shard: number;
  /** An even part, rounded up. */
  readonly part: { readonly names: number; readonly slots: number };
  readonly slots: Set<number>;
  names: number;
}

/** The slot of a namespace: the first ten bits of the hash. The salt is older than the word slot. */
export function slotOf(name: string): number {
  return mixedHash(name, "bucket") >>> 22;
}

/** The map for these active shards (at least one). @param names the namespaces that the map places */
export function balancedMap(previous: BalancedMap | undefined, active: readonly number[], names: Iterable<string>): BalancedMap {
  const counts = countNames(names);
  const part = { names: Math.ceil(sumOf(counts) / active.length), slots: Math.ceil(SLOTS / active.length) };
  const holders = active.map((shard): Holder => ({ shard, part, slots: new Set(), names: 0 }));
  const byShard = new Map(holders.map((holder) => [holder.shard, holder]));
  const free: number[] = [];
  for (const slot of counts.keys()) {
    const holder = byShard.get(previous?.[slot] ?? 0);
    if (holder === undefined) free.push(slot);
    else take(holder, slot, counts);
  }
  free.push(...holders.flatMap((holder) => giveAway(holder, counts)));
  deal(free, holders, counts);
  const map = new Uint8Array(SLOTS);
  for (const { shard, slots } of holders) {
    for (const slot of slots) map[slot] = shard;
  }
  return map;
}

function countNames(names: Iterable<string>): number[] {
  const counts = new Array<number>(SLOTS).fill(0);
  for (const name of names) {
    const slot = slotOf(name);
    counts[slot] = (counts[slot] ?? 0) + 1;
  }
  return counts;
}

function take(holder: Holder, slot: number, counts: readonly number[]): void {
  holder.slots.add(slot);
  holder.names += counts[slot] ?? 0;
}

/** Takes what is more than the shard's part, by slots that bring both surpluses to an end together. */
function giveAway(holder: Holder, counts: readonly number[]): number[] {
  const given: number[] = [];
  for (;;) {
    const names = Math.max(0, holder.names - holder.part.names);
    const slots = Math.max(0, holder.slots.size - holder.part.slots);
    if (names === 0 && slots === 0) return given;
    const wanted = slots === 0 ? names : names / slots;
    const distance = (slot: number) => Math.abs((counts[slot] ?? 0) - wanted);
    const slot = least([...holder.slots], distance);
    if (slot === undefined || (counts[slot] ?? 0) > names) return given;
    holder.slots.delete(slot);
    holder.names -= counts[slot] ?? 0;
    given.push(slot);
  }
}

/** Deals out the free slots, the fullest first. Full ones go where many namespaces a slot are missing. */
function deal(free: readonly number[], holders: readonly Holder[], counts: readonly number[]): void {
  const fullestFirst = [...free].sort((a, b) => (counts[b] ?? 0) - (counts[a] ?? 0) || a - b);
  const rest = { names: sumOf(free.map((slot) => counts[slot] ?? 0)), slots: free.length };
  for (const slot of fullestFirst) {
    const count = counts[slot] ?? 0;
    const isFull = count * rest.slots > rest.names;
    const withRoom = holders.filter((holder) => count <= missing(holder).names);
    const holder =
      least(withRoom, (each) => (isFull ? -missingRatio(each) : missingRatio(each))) ?? least(holders, ({ names }) => names);
    if (holder !== undefined) take(holder, slot, counts);
    rest.names -= count;
    rest.slots--;
  }
}

function missing({ part, names, slots }: Holder) {
  return { names: Math.max(0, part.names - names), slots: Math.max(0, part.slots - slots.size) };
}

function missingRatio(holder: Holder): number {
  const { names, slots } = missing(holder);
  return slots === 0 ? Number.POSITIVE_INFINITY : names / slots;
}

function least<T>(items: readonly T[], cost: (item: T) => number): T | undefined {
  let found = items[0];
  let lowest = Number.POSITIVE_INFINITY;
  for (const item of items) {
    const own = cost(item);
    if (own >= lowest) continue;
    found = item;
    lowest = own;
  }
  return found;
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}
