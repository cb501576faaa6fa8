// Cuts the space of namespaces' hashes into the ranges of a `shardSelector` (KEP-5866;
// docs/decisions/0007-push-down.md). Pure. Invariant: every own namespace is inside the ranges, however few
// they are.
//
// The hash of an unknown namespace falls into a gap between two known ones. With few namespaces, the ranges
// include all gaps, so running watches see a new namespace and can go on when it is granted. A gap outside of
// the ranges costs every informer a new list when a namespace is created there. With too many ranges, first
// the gaps between two namespaces of other subsets are closed, the narrowest first, where a new namespace is
// least likely. Then neighbouring ranges are joined over the fewest namespaces of other subsets, whose
// objects proxy-side filtering drops. Ranges of equal size would be useless, since FNV-1a of short names is
// badly skewed.

/** The hashes from `start` up to, but not including, `end`. */
export interface ShardRange {
  readonly start: bigint;
  readonly end: bigint;
}

interface ShardCut {
  /** At least one; ascending, without overlaps. */
  readonly ranges: readonly ShardRange[];
  /** Some gap is outside, so a watch may not see a namespace that is created later. */
  readonly hidesUnknown: boolean;
  /** The number of namespaces of other subsets inside. */
  readonly letThrough: number;
}

interface CutOptions {
  readonly maxRanges: number;
  /** False if the subset owns unknown namespaces too: then no gap is closed. Default true. */
  readonly mayHideUnknown?: boolean;
}

const END_OF_HASHES = 1n << 64n;

/** Undefined if no namespace would be left out. */
export function cutShards(ownNames: readonly string[], otherNames: readonly string[], options: CutOptions): ShardCut | undefined {
  const own = sortedHashes(ownNames);
  const isOwn = new Set(own);
  const others = sortedHashes(otherNames).filter((hash) => !isOwn.has(hash));
  const { gaps, hidesUnknown } = closeGaps(gapsBetween(others, own), options);
  const joined = joinCheapest(gaps, options.maxRanges);
  const letThrough = others.filter((hash) => isInside(joined, hash)).length;
  if (letThrough === others.length) return undefined;
  return { ranges: joined, hidesUnknown: hidesUnknown && !isWhole(joined), letThrough };
}

/** True if the API server shows objects of the namespace when it is asked for these ranges. */
export function isInRanges(ranges: readonly ShardRange[], namespace: string): boolean {
  return isInside(ranges, fnv1a64(namespace));
}

/** The query parameter. The API server's grammar has nothing but `||` over ranges of one field. */
export function formatShardSelector(ranges: readonly ShardRange[]): string {
  return ranges.map(({ start, end }) => `shardRange(object.metadata.namespace,'${hex(start)}','${hex(end)}')`).join("||");
}

function hex(hash: bigint): string {
  return `0x${hash.toString(16).padStart(16, "0")}`;
}

/** The hashes between two neighbouring namespaces of other subsets, or from one to an end of the space. */
interface Gap extends ShardRange {
  readonly own: number;
  /** Namespaces of other subsets below it. */
  readonly othersBelow: number;
}

function gapsBetween(others: BigUint64Array, own: BigUint64Array): Gap[] {
  const gaps: Gap[] = [];
  let start = 0n;
  let taken = 0;
  for (let index = 0; index <= others.length; index++) {
    const end = others[index] ?? END_OF_HASHES;
    const before = taken;
    while (taken < own.length && (own[taken] as bigint) < end) taken++;
    if (start < end) gaps.push({ start, end, own: taken - before, othersBelow: index });
    start = end + 1n;
  }
  return gaps;
}

function closeGaps(gaps: readonly Gap[], { maxRanges, mayHideUnknown = true }: CutOptions) {
  const surplus = gaps.length - maxRanges;
  if (surplus <= 0 || !mayHideUnknown) return { gaps, hidesUnknown: false };
  const empty = gaps.filter((gap) => gap.own === 0).sort((a, b) => ascending(a.end - a.start, b.end - b.start));
  const closed = new Set(empty.slice(0, surplus));
  return { gaps: gaps.filter((gap) => !closed.has(gap)), hidesUnknown: closed.size > 0 };
}

// A join of two neighbours changes the cost of no other join, so the cheapest joins are the best choice.
function joinCheapest(gaps: readonly Gap[], maxRanges: number): ShardRange[] {
  const costs = gaps.slice(1).map((gap, index) => ({ at: index + 1, cost: gap.othersBelow - (gaps[index]?.othersBelow ?? 0) }));
  const surplus = Math.max(0, gaps.length - maxRanges);
  const joins = new Set(
    costs
      .sort((a, b) => a.cost - b.cost)
      .slice(0, surplus)
      .map(({ at }) => at),
  );
  const ranges: ShardRange[] = [];
  for (const [index, { start, end }] of gaps.entries()) {
    const last = ranges.at(-1);
    if (last !== undefined && joins.has(index)) ranges[ranges.length - 1] = { start: last.start, end };
    else ranges.push({ start, end });
  }
  return ranges;
}

function isInside(ranges: readonly ShardRange[], hash: bigint): boolean {
  let [low, high] = [0, ranges.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ranges[middle] as ShardRange).end <= hash) low = middle + 1;
    else high = middle;
  }
  const range = ranges[low];
  return range !== undefined && range.start <= hash;
}

function isWhole([first]: readonly ShardRange[]): boolean {
  return first?.start === 0n && first.end === END_OF_HASHES;
}

// Typed arrays sort bigints by value, many times as fast as an array with a comparison function.
function sortedHashes(names: readonly string[]): BigUint64Array {
  return BigUint64Array.from(names, fnv1a64).sort();
}

function ascending(a: bigint, b: bigint): number {
  return a < b ? -1 : Number(a > b);
}

const OFFSET_HIGH = 0xcbf29ce4;
const OFFSET_LOW = 0x84222325;
/** The prime is 2^40 plus this number. */
const PRIME_LOW = 0x1b3;
const TWO_32 = 2 ** 32;

/**
 * FNV-1a with 64 bits over the UTF-8 bytes, as in the API server's shard selectors. It computes with two
 * halves, since a bigint multiplication for each byte would make planning many times as slow.
 */
export function fnv1a64(text: string): bigint {
  const bytes = asByteString(text);
  let high = OFFSET_HIGH;
  let low = OFFSET_LOW;
  for (let index = 0; index < bytes.length; index++) {
    low = (low ^ bytes.charCodeAt(index)) >>> 0;
    // hash * prime = (hash << 40) + hash * PRIME_LOW, modulo 2^64; every product stays below 2^53.
    const product = low * PRIME_LOW;
    high = (high * PRIME_LOW + Math.floor(product / TWO_32) + ((low << 8) >>> 0)) >>> 0;
    low = product >>> 0;
  }
  return (BigInt(high) << 32n) | BigInt(low);
}

// A string with one character for each byte, as names of namespaces, which are ASCII, already are.
function asByteString(text: string): string {
  return /^[ -~]*$/.test(text) ? text : String.fromCharCode(...new TextEncoder().encode(text));
}
