// The namespaces that a root divides inside other clusters, and their numbers for its placement. Pure. Invariant: the numbers of a
// cluster are computed once for each list of its names, since a cluster of a tenant may have thousands.
import type { ShardingRoot } from "../../api/sharding-config.ts";
import { remember, rememberNames } from "../../base/remember.ts";
import { NAME_HASHES, nameHash } from "../../kube/place.ts";
import { countNamespaces, SLOTS, type SlotCounts } from "./balanced-map.ts";
import { canaryTest } from "./canary.ts";

/** A new list of names is a new object. */
export interface ClusterNames {
  readonly cluster: string;
  /** Of its namespaces. */
  readonly names: readonly string[];
}

export interface NamespacesAbroad {
  readonly known: readonly ClusterNames[];
  /** False while the namespaces of a cluster are not known: nobody can say then whether the shards own about the same number. */
  readonly isComplete: boolean;
  /** No shard joins before this time, since the namespaces of a cluster may be known by then. Absent: none is awaited. */
  readonly awaitedUntilMs?: number | undefined;
}

export const NONE_ABROAD: NamespacesAbroad = { known: [], isComplete: true };

/** The numbers of the namespaces that the canary does not own. */
export interface AbroadCounts {
  readonly bySlot: SlotCounts;
  /** By the hash of the name, for Legacy. */
  readonly byHash: Uint32Array;
  readonly total: number;
}

/** @param firstNamespace see canaryTest */
export function countAbroad(
  { known }: NamespacesAbroad,
  canary: ShardingRoot["canary"],
  firstNamespace: string | undefined,
): AbroadCounts {
  const canaryText = JSON.stringify({ canary, firstNamespace });
  const counts = known.map((cluster) => countsIn(cluster)(canaryText));
  return {
    bySlot: sumOf(SLOTS, counts, ({ bySlot }) => bySlot),
    byHash: sumOf(NAME_HASHES, counts, ({ byHash }) => byHash),
    total: counts.reduce((sum, { total }) => sum + total, 0),
  };
}

function sumOf(length: number, counts: readonly AbroadCounts[], part: (of: AbroadCounts) => Uint32Array): Uint32Array {
  const sum = new Uint32Array(length);
  for (const of of counts) for (const [at, count] of part(of).entries()) sum[at] = (sum[at] ?? 0) + count;
  return sum;
}

const countsIn = remember(({ cluster, names }: ClusterNames) =>
  rememberNames((canaryText: string): AbroadCounts => {
    const { canary, firstNamespace } = JSON.parse(canaryText);
    const isCanary = canaryTest(canary, firstNamespace);
    const normal = names.filter((name) => !isCanary(name));
    const byHash = new Uint32Array(NAME_HASHES);
    for (const name of normal) byHash[nameHash(name)] = (byHash[nameHash(name)] ?? 0) + 1;
    return { bySlot: countNamespaces(normal, cluster), byHash, total: normal.length };
  }),
);
