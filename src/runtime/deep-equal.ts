// Equality of plain JSON values. Pure. A key that is undefined counts as absent, as it does in JSON.

/** True if both values would be the same JSON, the order of keys aside. */
export function isDeepEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, index) => isDeepEqual(item, b[index]));
  }
  const left = entriesOf(a);
  const right = new Map(entriesOf(b));
  return left.length === right.size && left.every(([key, value]) => right.has(key) && isDeepEqual(value, right.get(key)));
}

function entriesOf(value: object): [string, unknown][] {
  return Object.entries(value).filter(([, child]) => child !== undefined);
}
