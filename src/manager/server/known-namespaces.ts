// The names of the existing namespaces as an index, and a table's classes in two bytes for each namespace.
// After a failover hundreds of tables arrive with the same ten thousand names, and a Map for each would take
// half a megabyte. Invariant: an index is replaced rarely, since each table keeps the one it was read with.
import type { Clock } from "../../base/clock.ts";

export interface NameIndex {
  readonly names: readonly string[];
  readonly positions: ReadonlyMap<string, number>;
}

/** The index is replaced when more names than this differ. A name that it lacks costs a table little. */
const MAX_DIFFERENCE = 256;
const MAX_AGE_MS = 600_000;
const LIST_MS = 1_000;

/** The result returns the index; undefined while no names are known. */
export function createKnownNames(list: () => readonly string[], clock: Clock): () => NameIndex | undefined {
  let index: NameIndex | undefined;
  let madeMs = 0;
  let listedMs = 0;
  return () => {
    const nowMs = clock.monotonicMs();
    if (index !== undefined && nowMs - listedMs < LIST_MS) return index;
    listedMs = nowMs;
    const names = list();
    if (names.length === 0) return undefined; // not listed yet
    const isNear = index !== undefined && Math.abs(index.names.length - names.length) <= MAX_DIFFERENCE;
    if (index !== undefined && isNear && nowMs - madeMs < MAX_AGE_MS) return index;
    madeMs = nowMs;
    index = createNameIndex(names);
    return index;
  };
}

export function createNameIndex(names: readonly string[]): NameIndex {
  return { names, positions: new Map(names.map((name, position) => [name, position])) };
}

/** Less than 16 bits can hold: 0 means that a namespace has no class, so classes are stored plus 1. */
export const MAX_COMPACT_CLASSES = 65_534;

/** Reads like a Map from namespace to class, but in another order. */
export class CompactClasses implements ReadonlyMap<string, number> {
  readonly #index: NameIndex;
  readonly #classes: Uint16Array;
  /** The names that are not in the index. */
  readonly #others = new Map<string, number>();
  readonly size: number;

  constructor(index: NameIndex, classOf: ReadonlyMap<string, number>) {
    this.#index = index;
    this.#classes = new Uint16Array(index.names.length);
    this.size = classOf.size;
    for (const [name, number] of classOf) {
      const position = index.positions.get(name);
      if (position === undefined) this.#others.set(name, number);
      else this.#classes[position] = number + 1;
    }
  }

  get(name: string): number | undefined {
    const position = this.#index.positions.get(name);
    if (position === undefined) return this.#others.get(name);
    const stored = this.#classes[position] ?? 0;
    return stored === 0 ? undefined : stored - 1;
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  *entries(): MapIterator<[string, number]> {
    for (const [position, stored] of this.#classes.entries()) {
      if (stored !== 0) yield [this.#index.names[position] ?? "", stored - 1];
    }
    yield* this.#others;
  }

  *keys(): MapIterator<string> {
    for (const [name] of this.entries()) yield name;
  }

  *values(): MapIterator<number> {
    for (const [, number] of this.entries()) yield number;
  }

  [Symbol.iterator](): MapIterator<[string, number]> {
    return this.entries();
  }

  forEach(callback: (number: number, name: string, map: ReadonlyMap<string, number>) => void): void {
    for (const [name, number] of this.entries()) callback(number, name, this);
  }
}
