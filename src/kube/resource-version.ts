// Resource versions as numbers. Kubernetes allows this comparison (resourceversion.CompareResourceVersion).

// 39 digits hold every 128-bit number, and a text of a megabyte is refused early.
const WELL_FORMED = /^[1-9][0-9]{0,38}$/;

export type Version = bigint;

/** Earlier than every version. */
export const NEVER: Version = 0n;
/** Later than every version, for an end that is not known yet. */
export const WITHOUT_END: Version = 1n << 130n;

export function laterOf(a: Version, b: Version): Version {
  return a > b ? a : b;
}

/** Undefined for "", for "0", and for a version that cannot be compared, as other storages may have. */
export function parseResourceVersion(text: string | undefined): Version | undefined {
  return text !== undefined && WELL_FORMED.test(text) ? BigInt(text) : undefined;
}

/** True if both versions can be compared and `a` is later than `b`. */
export function isLaterVersion(a: string | undefined, b: string | undefined): boolean {
  const [left, right] = [parseResourceVersion(a), parseResourceVersion(b)];
  return left !== undefined && right !== undefined && left > right;
}
