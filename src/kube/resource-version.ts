// resourceVersions as numbers, which they may be compared as: k8s.io/apimachinery, resourceversion.CompareResourceVersion. Pure.

// With 38 digits no version of 128 bits is refused, and no text of a megabyte is read.
const WELL_FORMED = /^[1-9][0-9]{0,38}$/;

/** The version as a number; undefined for one that cannot be compared, as those of other storages may be, and for "" and "0". */
export function parseResourceVersion(text: string | undefined): bigint | undefined {
  return text !== undefined && WELL_FORMED.test(text) ? BigInt(text) : undefined;
}
