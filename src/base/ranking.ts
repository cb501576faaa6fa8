// Finds the item with the highest level. Invariant: levels are small whole numbers that change in small
// steps, so an item moves in constant time on average, however many items there are.

export interface Ranking<T> {
  /** Sets the level of an item, a whole number. Level 0 removes the item. */
  move(item: T, level: number): void;
  /** Of the items with the highest level the one that has had it for longest. */
  readonly top: T | undefined;
  /** The highest level; 0 without items. */
  readonly topLevel: number;
}

export function createRanking<T>(): Ranking<T> {
  const levelOf = new Map<T, number>();
  const items: (Set<T> | undefined)[] = [];
  let topLevel = 0;
  const itemsAt = (level: number): Set<T> => {
    const known = items[level] ?? new Set<T>();
    items[level] = known;
    return known;
  };
  return {
    move(item, level) {
      const before = levelOf.get(item) ?? 0;
      if (level === before) return;
      items[before]?.delete(item);
      levelOf.delete(item);
      if (level > 0) {
        levelOf.set(item, level);
        itemsAt(level).add(item);
        topLevel = Math.max(topLevel, level);
      }
      // Each step down undoes an earlier step up.
      while (topLevel > 0 && itemsAt(topLevel).size === 0) topLevel--;
    },
    get top() {
      return items[topLevel]?.values().next().value;
    },
    get topLevel() {
      return topLevel;
    },
  };
}
