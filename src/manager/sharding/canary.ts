// Which places (namespaces, and buckets of cluster-scoped names) the canary shard owns. Pure. Invariants: a
// larger percentage adds places, and removes at most the namespace of `firstCanaryNamespace`; a percentage
// selects at least one namespace if there is one.
import type { ShardingRoot } from "../../api/sharding-config.ts";
import { BUCKETS, placeHash } from "../../kube/place.ts";
import { mixedHash } from "./mixed-hash.ts";

type Canary = ShardingRoot["canary"];

const HASHES = 2 ** 32;
const FIRST_BUCKET = lowest(BUCKETS);

/**
 * The test whether the canary owns a place.
 * @param firstNamespace the stored result of {@link firstCanaryNamespace}
 */
export function canaryTest(canary: Canary, firstNamespace: string | undefined): (place: string) => boolean {
  if (canary === undefined) return () => false;
  const hashes = new Set((canary.inShardHash ?? []).map(Number));
  const limit = limitOf(canary);
  const names = new Set([...(canary.inNamespaces ?? []), ...(limit > 0 ? [firstNamespace, FIRST_BUCKET] : [])]);
  return (place) =>
    names.has(place) || (hashes.size > 0 && hashes.has(placeHash(place))) || (limit > 0 && canaryHash(place) < limit);
}

/**
 * The namespace that the canary owns because the percentage selects no other one, for example 5 % of ten; undefined if
 * there is none. It stays the same while it exists and no other namespace is selected.
 */
export function firstCanaryNamespace(canary: Canary, stored: string | undefined, namespaces: readonly string[]) {
  const limit = limitOf(canary);
  if (limit === 0 || namespaces.some((name) => canaryHash(name) < limit)) return undefined;
  if (stored !== undefined && namespaces.includes(stored)) return stored;
  return lowest(namespaces);
}

/** Hashes below this limit are selected by the percentage; 0 without one. */
function limitOf(canary: Canary): number {
  return ((canary?.percent ?? 0) / 100) * HASHES;
}

function lowest(places: readonly string[]): string | undefined {
  const [first, ...others] = places;
  if (first === undefined) return undefined;
  return others.reduce((best, each) => (canaryHash(each) < canaryHash(best) ? each : best), first);
}

function canaryHash(place: string): number {
  return mixedHash(place, "canary");
}
