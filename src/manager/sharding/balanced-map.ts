// The Balanced map of namespaces to shards: 1,024 slots by a well-mixed hash of the name, and for each slot
// the number of its shard. Pure. Invariants: every slot belongs to an active shard; a shard that joins gets its
// part (the whole part, less at most one slot); no more namespaces move than its part and the namespaces of
// the shards that left.
//
// Slots without a namespace are spread too, so that the load stays even when more namespaces come.
import { mixedHash } from "./mixed-hash.ts";

export const SLOTS = 1024;

/**
 * A shard that loses namespaces anyway gives up to this share of its part more than it must. Each shard that
 * loses something is restarted, so few shards should lose.
 */
const OVERDRAFT = 0.1;

/** The number of a shard for every slot. */
export type BalancedMap = Uint8Array;

/** A shard while the map is being made. */
interface Holder {
  readonly shard: number;
  readonly slots: Set<number>;
  /** The namespaces in its slots. */
  names: number;
  /** The number of namespaces that it should have. The parts of all shards differ by at most 1. */
  part: number;
}

/** The slot of a namespace: the first ten bits of the hash. The salt is older than the word slot. */
export function slotOf(name: string): number {
  return mixedHash(name, "bucket") >>> 22;
}

/**
 * The map for these active shards (at least one), which moves little of the previous one.
 * @param names the namespaces that the map places
 */
export function balancedMap(previous: BalancedMap | undefined, active: readonly number[], names: Iterable<string>): BalancedMap {
  const counts = countNames(names);
  const { holders, free } = holdersOf(previous, active, counts);
  setParts(holders, counts);
  deal(free, holders, counts);
  fillUp(holders, counts);
  spreadEmpty(holders, counts);
  const map = new Uint8Array(SLOTS);
  for (const { shard, slots } of holders) {
    for (const slot of slots) map[slot] = shard;
  }
  return map;
}

function countNames(names: Iterable<string>): Uint32Array {
  const counts = new Uint32Array(SLOTS);
  for (const name of names) {
    const slot = slotOf(name);
    counts[slot] = (counts[slot] ?? 0) + 1;
  }
  return counts;
}

function holdersOf(previous: BalancedMap | undefined, active: readonly number[], counts: Uint32Array) {
  const holders = active.map((shard): Holder => ({ shard, slots: new Set(), names: 0, part: 0 }));
  const byShard = new Map(holders.map((holder) => [holder.shard, holder]));
  const free: number[] = [];
  for (let slot = 0; slot < SLOTS; slot++) {
    const holder = byShard.get(previous?.[slot] ?? 0);
    if (holder === undefined) free.push(slot);
    else take(holder, slot, counts);
  }
  return { holders, free };
}

/** Shards with many namespaces get the larger parts, so that they lose less. */
function setParts(holders: readonly Holder[], counts: Uint32Array): void {
  const all = counts.reduce((sum, count) => sum + count, 0);
  const larger = all % holders.length;
  const fullestFirst = [...holders].sort((a, b) => b.names - a.names || a.shard - b.shard);
  for (const [at, holder] of fullestFirst.entries()) holder.part = Math.floor(all / holders.length) + (at < larger ? 1 : 0);
}

/** Gives each free slot, the fullest first, to the shard that lacks most namespaces. */
function deal(free: readonly number[], holders: readonly Holder[], counts: Uint32Array): void {
  for (const slot of [...free].sort((a, b) => (counts[b] ?? 0) - (counts[a] ?? 0) || a - b)) {
    const holder = least(holders, (each) => each.names - each.part + each.slots.size / (SLOTS + 1));
    if (holder !== undefined) take(holder, slot, counts);
  }
}

/**
 * Moves slots from shards with more than their part to shards with less, until no shard is further from its part
 * than the fullest slot, and no slot fits better elsewhere. A shard that has lost a slot gets none.
 */
function fillUp(holders: readonly Holder[], counts: Uint32Array): void {
  const fullestSlot = Math.max(...counts);
  const losers = new Set<Holder>();
  for (;;) {
    const receiver = least(
      holders.filter((each) => !losers.has(each)),
      lead,
    );
    if (receiver === undefined) return;
    const gift = giftFor(receiver, holders, losers, counts) ?? unevenGift(receiver, holders, counts, fullestSlot);
    if (gift === undefined) return;
    losers.add(gift.giver);
    give(gift.giver, receiver, gift.slot, counts);
  }
}

interface Gift {
  readonly giver: Holder;
  readonly slot: number;
}

/** A slot of a shard with more than its part, first of one that has lost a slot already. */
function giftFor(
  receiver: Holder,
  holders: readonly Holder[],
  losers: ReadonlySet<Holder>,
  counts: Uint32Array,
): Gift | undefined {
  const givers = holders.filter((each) => lead(each) > 0);
  givers.sort((a, b) => Number(losers.has(b)) - Number(losers.has(a)) || lead(b) - lead(a) || a.shard - b.shard);
  for (const giver of givers) {
    const most = Math.min(-lead(receiver), lead(giver) + Math.floor(giver.part * OVERDRAFT));
    const slot = slotToGive(giver, receiver, most, counts);
    if (slot !== undefined) return { giver, slot };
  }
  return undefined;
}

/**
 * A slot of the fullest shard, which may then have less than its part: any slot that evens out the two, if one of
 * them is further from its part than the fullest slot, else one that leaves the receiver no more than the giver.
 */
function unevenGift(receiver: Holder, holders: readonly Holder[], counts: Uint32Array, fullestSlot: number): Gift | undefined {
  const giver = least(holders, (each) => -lead(each));
  if (giver === undefined) return undefined;
  const distance = lead(giver) - lead(receiver);
  const isFar = Math.max(lead(giver), -lead(receiver)) > fullestSlot;
  const most = isFar ? distance : Math.min(-lead(receiver), Math.floor(distance / 2));
  const slot = slotToGive(giver, receiver, most, counts);
  return slot === undefined ? undefined : { giver, slot };
}

/** A slot with 1 to `most` namespaces, so chosen that the giver's surplus of slots ends with that of namespaces. */
function slotToGive(giver: Holder, receiver: Holder, most: number, counts: Uint32Array): number | undefined {
  const surplus = Math.max(1, (giver.slots.size - receiver.slots.size) / 2);
  const wanted = Math.max(1, most / surplus);
  const candidates = [...giver.slots].filter((slot) => counts[slot] !== 0 && (counts[slot] ?? 0) <= most);
  return least(candidates, (slot) => Math.abs((counts[slot] ?? 0) - wanted));
}

/** Evens out the numbers of slots by slots without a namespace, whose move costs nothing. */
function spreadEmpty(holders: readonly Holder[], counts: Uint32Array): void {
  for (;;) {
    const receiver = least(holders, ({ slots }) => slots.size);
    const isEmpty = (slot: number) => counts[slot] === 0;
    const givers = holders.filter(({ slots }) => slots.size > (receiver?.slots.size ?? 0) + 1 && [...slots].some(isEmpty));
    const giver = least(givers, ({ slots }) => -slots.size);
    const slot = giver && [...giver.slots].find(isEmpty);
    if (receiver === undefined || giver === undefined || slot === undefined) return;
    give(giver, receiver, slot, counts);
  }
}

/** The namespaces that a shard has more than its part; negative if it has less. */
function lead({ names, part }: Holder): number {
  return names - part;
}

function take(holder: Holder, slot: number, counts: Uint32Array): void {
  holder.slots.add(slot);
  holder.names += counts[slot] ?? 0;
}

function give(giver: Holder, receiver: Holder, slot: number, counts: Uint32Array): void {
  giver.slots.delete(slot);
  giver.names -= counts[slot] ?? 0;
  take(receiver, slot, counts);
}

/** The first of the items with the lowest cost; undefined if there is none. */
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
