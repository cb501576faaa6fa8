// Which owners stay, though the spec names others: all of a paused app, and those of an app that would move more namespaces at once than
// it allows. Pure. Invariant: the limit is judged for home, and for home and the insides of all clusters together. It keeps all of them or none.
import type { ClusterRoute } from "../ownership/clusters.ts";
import { countNamespaces } from "../ownership/place-lists.ts";
import type { Snapshot } from "../ownership/snapshot.ts";
import type { AppFacts } from "./app-facts.ts";
import { pausedClusters } from "./kept-clusters.ts";
import { haveAllReported, type InForce, ownersHash, pauseAt, tableInForce } from "./paused.ts";
import { countKept, NONE_INSIDE } from "./plan-cluster-tables.ts";

/** The owners that the plan gives, before fences. */
export function keptOwners(facts: AppFacts, snapshots: () => readonly Snapshot[]) {
  const { app, pods, factsOf, bySpec, subsets, isPaused, maxMovingPercent } = facts;
  const mayKeep = isPaused || maxMovingPercent !== undefined;
  const inForce: InForce = mayKeep
    ? tableInForce(app, pods, factsOf, facts.ownersHashes)
    : { table: undefined, isLost: false, hashes: facts.ownersHashes ?? [] };
  const keptSubsets = isPaused ? subsets : (facts.keptSubsets ?? subsets);
  const paused = pauseAt(bySpec, inForce.table, keptSubsets);
  const isComplete = !mayKeep || haveAllReported(pods, factsOf);
  const tables = { bySpec: facts.clusterTables ?? new Map(), byNames: facts.tableByNames, keptSubsets, isComplete };
  const divided = (facts.clusters ?? []).filter(isDivided);
  const inside =
    divided.length === 0 || !mayKeep ? NONE_INSIDE : countKept({ ...tables, clusters: divided, snapshots: snapshots() });
  const exceeds = (kept: number, total: number) => maxMovingPercent !== undefined && kept * 100 > maxMovingPercent * total;
  // Large clusters must not hide that all of home moves.
  const atHome = countNamespaces(bySpec);
  const isOver = exceeds(paused.kept, atHome) || exceeds(paused.kept + inside.kept, atHome + inside.total);
  const isKept = isPaused || isOver;
  const desired = isKept ? paused.desired : bySpec;
  const added = inForce.isLost ? [] : [ownersHash(desired)];
  return {
    /** The owners at home. */
    desired,
    /** The owners of other clusters. Undefined: the app divides none. */
    clusters: clusterOwners(facts, { snapshots, keptSubsets, isOver, isComplete }),
    /** What the owners inside clusters follow from. */
    tables: { ...tables, isPaused: isKept },
    /** The number of namespaces that stay, though the spec gives them to others. */
    kept: isKept ? paused.kept + inside.kept : 0,
    needsConfirmation: isOver && !isPaused,
    /** For the status, the oldest first. */
    ownersHashes: [...inForce.hashes.filter((hash) => !added.includes(hash)), ...added],
  };
}

interface KeptFacts {
  readonly snapshots: () => readonly Snapshot[];
  readonly keptSubsets: readonly string[];
  readonly isOver: boolean;
  readonly isComplete: boolean;
}

/** The limit of moves is about namespaces, so it keeps only clusters whose namespaces are divided: with them stays what is in no namespace. */
function clusterOwners(
  { clusters, subsets, isPaused }: AppFacts,
  { snapshots, keptSubsets, isOver, isComplete }: KeptFacts,
): readonly ClusterRoute[] | undefined {
  if (isPaused) return pausedClusters(clusters, snapshots(), subsets, isComplete);
  if (!isOver || clusters === undefined) return clusters;
  const kept = pausedClusters(clusters.filter(isDivided), snapshots(), keptSubsets, isComplete) ?? [];
  return [...clusters.filter((cluster) => !isDivided(cluster)), ...kept];
}

function isDivided({ upstream }: ClusterRoute): boolean {
  return upstream !== undefined;
}
