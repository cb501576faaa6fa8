// Differences of JSON values: equality, and merge patches (RFC 7386). Pure. Invariant: a key with the value
// undefined counts as absent, as in JSON.

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

/**
 * The patch that turns `before` into `after`: the changed fields, and null for removed ones. Arrays are
 * replaced as a whole. Undefined if both are equal. A null in `after` means absent, since a merge patch
 * cannot express null values.
 */
export function createMergePatch(before: unknown, after: unknown): unknown {
  if (!isRecord(before) || !isRecord(after)) return isDeepEqual(before, after) ? undefined : after;
  const patch: Record<string, unknown> = {};
  for (const key of Object.keys(before)) if (isPresent(before[key]) && !isPresent(after[key])) patch[key] = null;
  for (const [key, value] of Object.entries(after)) {
    if (!isPresent(value)) continue;
    const change = isPresent(before[key]) ? createMergePatch(before[key], value) : value;
    if (change !== undefined) patch[key] = change;
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
