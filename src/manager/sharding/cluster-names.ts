// The namespaces that a root divides inside other clusters, and their numbers for its placement. Pure. Invariant: the numbers of a
// cluster are computed once for each list of its names, since a cluster of a tenant may have thousands.
import type { ShardingRoot } from "../../api/sharding-config.ts";
import { remember, rememberNames } from "../../base/remember.ts";
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

/** The number of namespaces in every slot, without those of the canary. @param firstNamespace see canaryTest */
export function countAbroad(
  { known }: NamespacesAbroad,
  canary: ShardingRoot["canary"],
  firstNamespace: string | undefined,
): SlotCounts {
  const sum = new Uint32Array(SLOTS);
  const canaryText = JSON.stringify({ canary, firstNamespace });
  for (const cluster of known) {
    for (const [slot, count] of countsIn(cluster)(canaryText).entries()) sum[slot] = (sum[slot] ?? 0) + count;
  }
  return sum;
}

const countsIn = remember(({ cluster, names }: ClusterNames) =>
  rememberNames((canaryText: string): SlotCounts => {
    const { canary, firstNamespace } = JSON.parse(canaryText);
    const isCanary = canaryTest(canary, firstNamespace);
    return countNamespaces(
      names.filter((name) => !isCanary(name)),
      cluster,
    );
  }),
);
