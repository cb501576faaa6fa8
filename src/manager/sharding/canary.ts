// Which namespaces are the canary's: those that one of its three fields selects. Pure. Invariant: a
// larger percentage adds namespaces and removes none, and going back gives exactly the namespaces of before.
import type { ShardingRoot } from "../../api/sharding-config.ts";
import { placeHash } from "../../kube/place.ts";
import { mixedHash } from "./mixed-hash.ts";

const HASHES = 2 ** 32;

/** The test of a namespace's name. Without a canary, no namespace is the canary's. */
export function canaryTest(canary: ShardingRoot["canary"]): (namespace: string) => boolean {
  if (canary === undefined) return () => false;
  const names = new Set(canary.inNamespaces);
  const hashes = new Set((canary.inShardHash ?? []).map(Number));
  const limit = ((canary.percent ?? 0) / 100) * HASHES;
  return (name) =>
    names.has(name) || (hashes.size > 0 && hashes.has(placeHash(name))) || (limit > 0 && mixedHash(name, "canary") < limit);
}
