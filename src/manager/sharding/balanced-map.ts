// The Balanced map of namespaces to shards: a hash of the name gives one of 1,024 slots, and each slot has a
// shard. The slot of a namespace in another cluster follows from the names of both. Pure. Invariants: every slot belongs to an active
// shard. A shard that joins gets its part, within one slot. The namespaces of the shards that left move, and of the others only as many
// as the parts need.
//
// Slots without a namespace are spread too, so that the numbers stay even when more namespaces come.
// Cluster-scoped names are divided in the same way; each of their 32 hashes is a slot.
import { isUneven } from "./evenness.ts";
import { mixedHash } from "./mixed-hash.ts";

export const SLOTS = 1024;

/**
 * A giver may end with less than its part, by up to this share of it. Each shard that loses a namespace is
 * restarted, so few shards should give much instead of many giving little.
 */
const OVERDRAFT = 0.1;

/** The number of a shard for every slot. */
export type SlotMap = Uint8Array;

/** The number of namespaces in every slot. */
export type SlotCounts = Uint32Array;

/** A shard while the map is being made. */
interface Holder {
  readonly shard: number;
  readonly slots: Set<number>;
  /** The number of namespaces in its slots. */
  namespaces: number;
  /** The number of namespaces that it should have. The parts of all shards differ by at most 1. */
  part: number;
}

/** The slot of a namespace: the first ten bits of the hash. The salt is an old word for "slot". */
export function slotOf(name: string): number {
  return mixedHash(name, "bucket") >>> 22;
}

/** The slot of a namespace of another cluster. Namespaces that many clusters have, such as kube-system, spread over the shards. */
export function slotIn(cluster: string, name: string): number {
  return slotOf(`${cluster}/${name}`);
}

/**
 * The map for these active shards, with few changes to the previous map.
 * @param active not empty
 * @param maxGivers how many of the active shards may give slots to others
 */
export function balancedMap(
  previous: SlotMap | undefined,
  active: readonly number[],
  counts: SlotCounts,
  maxGivers = Number.POSITIVE_INFINITY,
): SlotMap {
  const { holders, free } = holdersOf(previous, active, counts);
  setParts(holders, counts);
  dealFreeSlots(free, holders, counts);
  fillParts(holders, counts, maxGivers);
  spreadEmptySlots(holders, counts);
  const map = new Uint8Array(counts.length);
  for (const { shard, slots } of holders) {
    for (const slot of slots) map[slot] = shard;
  }
  return map;
}

/** @param cluster absent at home */
export function countNamespaces(names: Iterable<string>, cluster?: string): SlotCounts {
  const counts = new Uint32Array(SLOTS);
  for (const name of names) {
    const slot = cluster === undefined ? slotOf(name) : slotIn(cluster, name);
    counts[slot] = (counts[slot] ?? 0) + 1;
  }
  return counts;
}

/** The number of namespaces that each of these shards owns. */
export function loadsOf(map: SlotMap, active: readonly number[], counts: SlotCounts): number[] {
  const loads = new Map(active.map((shard) => [shard, 0]));
  for (const [slot, shard] of map.entries()) loads.set(shard, (loads.get(shard) ?? 0) + (counts[slot] ?? 0));
  return active.map((shard) => loads.get(shard) ?? 0);
}

function holdersOf(previous: SlotMap | undefined, active: readonly number[], counts: SlotCounts) {
  const holders = active.map((shard): Holder => ({ shard, slots: new Set(), namespaces: 0, part: 0 }));
  const byShard = new Map(holders.map((holder) => [holder.shard, holder]));
  const free: number[] = [];
  for (let slot = 0; slot < counts.length; slot++) {
    const holder = byShard.get(previous?.[slot] ?? 0);
    if (holder === undefined) free.push(slot);
    else addSlot(holder, slot, counts);
  }
  return { holders, free };
}

/** Shards with many namespaces get the larger parts, so that they lose less. */
function setParts(holders: readonly Holder[], counts: SlotCounts): void {
  const all = counts.reduce((sum, count) => sum + count, 0);
  const larger = all % holders.length;
  const fullestFirst = [...holders].sort((a, b) => b.namespaces - a.namespaces || a.shard - b.shard);
  for (const [at, holder] of fullestFirst.entries()) holder.part = Math.floor(all / holders.length) + (at < larger ? 1 : 0);
}

/** Gives each free slot, the fullest first, to the shard that lacks most namespaces, and of several such to that with fewest slots. */
function dealFreeSlots(free: readonly number[], holders: readonly Holder[], counts: SlotCounts): void {
  for (const slot of [...free].sort((a, b) => (counts[b] ?? 0) - (counts[a] ?? 0) || a - b)) {
    const holder = cheapest(holders, (each) => each.namespaces - each.part + each.slots.size / (counts.length + 1));
    if (holder !== undefined) addSlot(holder, slot, counts);
  }
}

/**
 * Moves slots from shards with more than their part to shards with less. It ends when no such move is left and
 * no shard is further from its part than the fullest slot, or when `maxGivers` shards have no more to give. A
 * shard that has given a slot gets none.
 */
function fillParts(holders: readonly Holder[], counts: SlotCounts, maxGivers: number): void {
  const fullestSlot = Math.max(...counts);
  const pastGivers = new Set<Holder>();
  const mayGive = (holder: Holder) => pastGivers.size < maxGivers || pastGivers.has(holder);
  for (;;) {
    const receiver = cheapest(
      holders.filter((each) => !pastGivers.has(each)),
      excess,
    );
    if (receiver === undefined) return;
    const givers = holders.filter(mayGive);
    const isFar = (giver: Holder) =>
      Math.max(excess(giver), -excess(receiver)) > fullestSlot || isUneven(holders.map(({ namespaces }) => namespaces));
    const gift = giftFor(receiver, givers, pastGivers, counts) ?? unevenGift(receiver, givers, counts, isFar);
    if (gift === undefined) return;
    pastGivers.add(gift.giver);
    moveSlot(gift.giver, receiver, gift.slot, counts);
  }
}

interface Gift {
  readonly giver: Holder;
  readonly slot: number;
}

/** A slot of a shard with more than its part, preferably of a shard that has given one already. */
function giftFor(
  receiver: Holder,
  holders: readonly Holder[],
  pastGivers: ReadonlySet<Holder>,
  counts: SlotCounts,
): Gift | undefined {
  const givers = holders.filter((each) => excess(each) > 0);
  givers.sort((a, b) => Number(pastGivers.has(b)) - Number(pastGivers.has(a)) || excess(b) - excess(a) || a.shard - b.shard);
  for (const giver of givers) {
    const most = Math.min(-excess(receiver), excess(giver) + Math.floor(giver.part * OVERDRAFT));
    const slot = slotToGive(giver, receiver, most, counts);
    if (slot !== undefined) return { giver, slot };
  }
  return undefined;
}

/**
 * A slot of a shard with more namespaces than the receiver, even if the giver then has less than its part. If they
 * are far from even, any slot that brings the two closer. Otherwise a slot after which the giver has at least as
 * many namespaces as the receiver.
 * @param isFar the giver or the receiver is further from its part than the fullest slot, or the shards are uneven
 */
function unevenGift(
  receiver: Holder,
  givers: readonly Holder[],
  counts: SlotCounts,
  isFar: (giver: Holder) => boolean,
): Gift | undefined {
  for (const giver of [...givers].sort((a, b) => excess(b) - excess(a) || a.shard - b.shard)) {
    const distance = giver.namespaces - receiver.namespaces;
    const most = isFar(giver) ? distance - 1 : Math.min(-excess(receiver), Math.floor(distance / 2));
    const slot = slotToGive(giver, receiver, most, counts);
    if (slot !== undefined) return { giver, slot };
  }
  return undefined;
}

/** A slot with 1 to `most` namespaces. It has about as many as if `most` were spread over all slots to move. */
function slotToGive(giver: Holder, receiver: Holder, most: number, counts: SlotCounts): number | undefined {
  const slotsToMove = Math.max(1, (giver.slots.size - receiver.slots.size) / 2);
  const wanted = Math.max(1, most / slotsToMove);
  const candidates = [...giver.slots].filter((slot) => counts[slot] !== 0 && (counts[slot] ?? 0) <= most);
  return cheapest(candidates, (slot) => Math.abs((counts[slot] ?? 0) - wanted));
}

/** Evens out the numbers of slots by moving slots without a namespace, which costs nothing. */
function spreadEmptySlots(holders: readonly Holder[], counts: SlotCounts): void {
  for (;;) {
    const receiver = cheapest(holders, ({ slots }) => slots.size);
    const isEmpty = (slot: number) => counts[slot] === 0;
    const givers = holders.filter(({ slots }) => slots.size > (receiver?.slots.size ?? 0) + 1 && [...slots].some(isEmpty));
    const giver = cheapest(givers, ({ slots }) => -slots.size);
    const slot = giver && [...giver.slots].find(isEmpty);
    if (receiver === undefined || giver === undefined || slot === undefined) return;
    moveSlot(giver, receiver, slot, counts);
  }
}

/** How many namespaces a shard has beyond its part; negative if it has less. */
function excess({ namespaces, part }: Holder): number {
  return namespaces - part;
}

function addSlot(holder: Holder, slot: number, counts: SlotCounts): void {
  holder.slots.add(slot);
  holder.namespaces += counts[slot] ?? 0;
}

function moveSlot(giver: Holder, receiver: Holder, slot: number, counts: SlotCounts): void {
  giver.slots.delete(slot);
  giver.namespaces -= counts[slot] ?? 0;
  addSlot(receiver, slot, counts);
}

/** The first of the items with the lowest cost; undefined if there is none. */
function cheapest<T>(items: readonly T[], cost: (item: T) => number): T | undefined {
  let found = items[0];
  let lowest = Number.POSITIVE_INFINITY;
  for (const item of items) {
    const itemCost = cost(item);
    if (itemCost >= lowest) continue;
    found = item;
    lowest = itemCost;
  }
  return found;
}
