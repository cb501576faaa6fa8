// Resource versions as numbers. Kubernetes allows this comparison: k8s.io/apimachinery, resourceversion.CompareResourceVersion.
// Pure; used by the codec and the proxy.

// 39 digits hold every 128-bit number, and a text of a megabyte is refused early.
const WELL_FORMED = /^[1-9][0-9]{0,38}$/;

/** The version as a number. Undefined for "", for "0", and for a version that cannot be compared, as other storages may have. */
export function parseResourceVersion(text: string | undefined): bigint | undefined {
  return text !== undefined && WELL_FORMED.test(text) ? BigInt(text) : undefined;
}
