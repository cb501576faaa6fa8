// Equality of plain JSON values. Pure. Invariant: a key with the value undefined counts as absent, as in
// JSON.

/** True if both values are the same JSON; the order of keys does not matter. */
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
