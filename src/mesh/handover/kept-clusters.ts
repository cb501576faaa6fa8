// The owners of clusters that do not follow from the spec: those of an app that is paused, or ends. Pure. They follow from the
// routes that pods have, so another replica finds them too.
import { type ClusterRoute, sameClusters } from "../ownership/clusters.ts";
import type { ClusterTables, Snapshot } from "../ownership/snapshot.ts";
import { DEFAULT_SUBSET, namespacesOf, type RouteTable } from "../ownership/table.ts";

/**
 * The owners while an app is paused: a cluster stays with its owner by the newest routes, if the app still has that subset.
 * @param desired undefined if the spec has no rule about clusters any more: then those of the newest routes stay
 * @param isComplete all pods have reported. If not, a cluster whose owner no pod knows stays closed
 */
export function pausedClusters(
  desired: readonly ClusterRoute[] | undefined,
  snapshots: readonly Pick<Snapshot, "version" | "clusters">[],
  subsets: readonly string[],
  isComplete: boolean,
): readonly ClusterRoute[] | undefined {
  const [last] = snapshots.toSorted((a, b) => b.version - a.version);
  if (desired === undefined) {
    return last?.clusters?.map(({ isFenced: _, owner, ...cluster }) => ({
      ...cluster,
      owner: subsets.includes(owner) ? owner : DEFAULT_SUBSET,
    }));
  }
  return desired.map((cluster) => {
    const known = snapshots.flatMap((each) => sameClusters(each, cluster).map((its) => ({ version: each.version, its })));
    // A cluster that is closed to its owner may be one whose owner was not known: routes that show another owner come first.
    known.sort((a, b) => Number(!a.its.isFenced) - Number(!b.its.isFenced) || a.version - b.version);
    const last = known.at(-1)?.its;
    const kept = last !== undefined && subsets.includes(last.owner) ? { ...cluster, owner: last.owner } : cluster;
    const isKnown = isComplete || cluster.upstream !== undefined || (last !== undefined && !last.isFenced);
    return isKnown ? kept : { ...kept, isFenced: true };
  });
}

function newestWithClusters<T extends Pick<Snapshot, "version" | "clusters">>(snapshots: readonly T[]): T | undefined {
  return snapshots.filter(({ clusters }) => clusters !== undefined).sort((a, b) => b.version - a.version)[0];
}

/** The tables of an app that ends: the default subset owns everything in its other clusters, too. */
export function endingTables(snapshots: readonly Snapshot[]): ClusterTables {
  const newest = snapshots.toSorted((a, b) => a.version - b.version).flatMap(({ clusterTables }) => [...(clusterTables ?? [])]);
  return new Map(newest.map(([name, table]) => [name, wholeTable(namespacesOf(table))]));
}

/** One subset owns everything: the default subset, to which all pods belong that no rule names. */
export function wholeTable(places: Iterable<string>): RouteTable {
  return {
    rules: [],
    classes: [[]],
    classOf: new Map([...places].map((name) => [name, 0])),
    sharedResources: [],
    fenced: new Set(),
  };
}

/** The clusters of an app that ends: first the default subset gets them, and afterwards all pods join that subset. */
export function endingClusters(snapshots: readonly Snapshot[]): readonly ClusterRoute[] {
  return (newestWithClusters(snapshots)?.clusters ?? []).map(({ isFenced: _, ...cluster }) => ({
    ...cluster,
    owner: DEFAULT_SUBSET,
  }));
}
