// Freezes plain JSON values, so that all readers of a store can share an object. Called by store.ts.

/** Freezes the value and everything in it. The value itself is changed. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const child of Object.values(value)) deepFreeze(child);
  return value;
}
