// Finds the item with the highest level. Invariant: levels are small whole numbers that change in small
// steps, so an item moves in constant time on average, however many items there are.

export function createRanking<T>() {
  const levelOf = new Map<T, number>();
  const items: (Set<T> | undefined)[] = [];
  let topLevel = 0;
  const itemsAt = (level: number): Set<T> => {
    const known = items[level] ?? new Set<T>();
    items[level] = known;
    return known;
  };
  return {
    /** Sets the level of an item. Level 0 removes the item. */
    move(item: T, level: number): void {
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
    /** Of the items with the highest level the one that has had it for longest. */
    get top(): T | undefined {
      return items[topLevel]?.values().next().value;
    },
    /** 0 without items. */
    get topLevel(): number {
      return topLevel;
    },
  };
}
