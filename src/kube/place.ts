// The place of an object decides its owner: its namespace, or for a cluster-scoped object a bucket, by the
// hash of its name. Invariant: no namespace has the name of a bucket or of the cluster scope.

/** The place of a cluster-scoped object of unknown name, and of all if the route table has no buckets. */
export const CLUSTER_SCOPE = "";

export const NAME_HASHES = 32;

const BUCKET_MARK = "#";

export const BUCKETS: readonly string[] = Array.from({ length: NAME_HASHES }, (_, hash) => `${BUCKET_MARK}${hash}`);

/** The sum of the UTF-8 bytes of a name modulo 32. Names with the same letters collide. */
export function nameHash(name: string): number {
  let sum = 0;
  for (let at = 0; at < name.length; at++) {
    const code = name.charCodeAt(at);
    if (code > 0x7f) return encoder.encode(name).reduce((all, byte) => all + byte, 0) % NAME_HASHES;
    sum += code;
  }
  return sum % NAME_HASHES;
}

const encoder = new TextEncoder();

/** The place of a cluster-scoped object. @param name "" if it is not known */
export function clusterPlace(name: string): string {
  return name === "" ? CLUSTER_SCOPE : `${BUCKET_MARK}${nameHash(name)}`;
}

export function isBucket(place: string): boolean {
  return place.startsWith(BUCKET_MARK);
}

export function isInClusterScope(place: string): boolean {
  return place === CLUSTER_SCOPE || isBucket(place);
}

/** The hash of a namespace's name, or the number of a bucket. */
export function placeHash(place: string): number {
  return isBucket(place) ? Number(place.slice(BUCKET_MARK.length)) : nameHash(place);
}
