// The plan for the other clusters of an app: whole ones (plan-clusters.ts), and those whose namespaces have owners
// (plan-cluster-tables.ts). Pure.
import type { ClusterRoute } from "../ownership/clusters.ts";
import type { ClusterTables, Snapshot } from "../ownership/snapshot.ts";
import type { Claim } from "./claims.ts";
import { planClusterTables, type TableByNames } from "./plan-cluster-tables.ts";
import { planClusters } from "./plan-clusters.ts";

interface AbroadFacts {
  readonly owned: readonly ClusterRoute[];
  readonly subsets: readonly string[];
  readonly isPaused: boolean;
  /** All pods have reported: the snapshots show which tables are in force. */
  readonly isComplete: boolean;
  /** The subsets with which a pause keeps namespaces. Default: all. */
  readonly keptSubsets?: readonly string[] | undefined;
  readonly claims: readonly Claim[];
  readonly bySpec: ClusterTables;
  readonly byNames?: TableByNames | undefined;
  readonly snapshots: () => readonly Snapshot[];
}

/** Whole clusters have one owner; in those with an upstream, a table gives each namespace its owner. */
export function planAbroad({ owned, snapshots, keptSubsets, ...facts }: AbroadFacts) {
  const whole = planClusters(
    owned.filter(({ upstream }) => upstream === undefined),
    facts.claims,
  );
  const divided = owned.filter(({ upstream }) => upstream !== undefined);
  const tables = { ...facts, clusters: divided, keptSubsets: keptSubsets ?? facts.subsets };
  const inside = divided.length === 0 ? undefined : planClusterTables({ ...tables, snapshots: snapshots() });
  return {
    clustersOf: (subset: string) => [...whole.clustersOf(subset), ...(inside?.clusters ?? [])],
    tablesOf: (subset: string) => inside?.tablesOf(subset),
    clusterTables: inside && inside.desired.size > 0 ? inside.desired : undefined,
    clusterTableWaits: inside?.waitsInside,
    waits: [...whole.waits, ...(inside?.waits ?? [])],
  };
}
