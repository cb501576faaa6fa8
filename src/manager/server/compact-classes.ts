// The classes of a table that a pod has brought, by namespace, in two bytes for each namespace that the
// manager knows. After a failover the tables of hundreds of apps come with the same ten thousand names, and a
// Map of them takes half a megabyte each. Invariant: it reads like the Map that it stands for, but in another
// order. Used by foreign-table.ts.

/** The names of the namespaces that the manager knows; many tables share one index. */
export interface NameIndex {
  readonly names: readonly string[];
  readonly positions: ReadonlyMap<string, number>;
}

export function createNameIndex(names: readonly string[]): NameIndex {
  return { names, positions: new Map(names.map((name, position) => [name, position])) };
}

/** The number of classes that a table can have: 0 means that a namespace has none. */
export const MAX_COMPACT_CLASSES = 65_534;

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
    for (const [name, at] of classOf) {
      const position = index.positions.get(name);
      if (position === undefined) this.#others.set(name, at);
      else this.#classes[position] = at + 1;
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
    for (const [, at] of this.entries()) yield at;
  }

  [Symbol.iterator](): MapIterator<[string, number]> {
    return this.entries();
  }

  forEach(callback: (at: number, name: string, map: ReadonlyMap<string, number>) => void): void {
    for (const [name, at] of this.entries()) callback(at, name, this);
  }
}
