// Freezing of plain JSON values, so that an object can be shared by everybody who reads a store. Pure.

/** Freezes the value and everything in it, in place. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const child of Object.values(value)) deepFreeze(child);
  return value;
}
