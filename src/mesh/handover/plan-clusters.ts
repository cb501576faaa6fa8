// The handover of clusters; plan-fences.ts does the same for namespaces. A pure function of the claims and of the owners that the
// spec names, without memory. Invariant: a subset gets a cluster only when no live pod of another subset may still send requests
// to any of its servers. A pod that does not know a server may send to it.
import { remember, rememberNames } from "../../base/remember.ts";
import { type ClusterRoute, clusterAt, mayReach } from "../ownership/clusters.ts";
import type { Snapshot } from "../ownership/snapshot.ts";
import { DEFAULT_SUBSET } from "../ownership/table.ts";
import type { Claim } from "./claims.ts";
import { causeOf, type WaitCause } from "./plan-fences.ts";

/** A pod that may still send requests to clusters of another subset, or whose requests to clusters the mesh does not limit. */
export interface ClusterWait {
  readonly podName: string;
  /** Undefined if not known. */
  readonly subset: string | undefined;
  /** "not-enforced": its proxy does not see what the pod sends to other servers, or is of an earlier version. */
  readonly cause: WaitCause | "not-enforced";
  /** Names of the clusters. */
  readonly clusters: readonly string[];
}

export interface ClusterPlan {
  /** The clusters as the pods of a subset get them. */
  clustersOf(subset: string): readonly ClusterRoute[];
  /** Includes pods for which no owner waits, because the owner had its cluster before they came. */
  readonly waits: readonly ClusterWait[];
}

/** @param desired the owners that the spec names, without fences */
export function planClusters(desired: readonly ClusterRoute[], claims: readonly Claim[]): ClusterPlan {
  const fenced = new Set<string>();
  const isHad = remember((cluster: ClusterRoute) => isGranted(cluster, claims));
  const keptBy = rememberKept(desired);
  const waits = claims.flatMap((claim): ClusterWait[] => {
    const isFree = isUnenforced(claim);
    const kept = keptBy(claim, isFree);
    // If routes let another subset reach a granted cluster, they are newer than the grant: the app had no rule about it for a time.
    const isAfterGrant = claim.kind === "table" && claim.clusters !== undefined;
    for (const cluster of kept) if (claim.subset !== cluster.owner && (isAfterGrant || !isHad(cluster))) fenced.add(cluster.name);
    const cause = isFree && claim.kind === "table" ? "not-enforced" : causeOf(claim);
    const { podName, subset } = claim;
    return kept.length === 0 ? [] : [{ podName, subset, cause, clusters: kept.map(({ name }) => name) }];
  });
  return {
    clustersOf: (subset) =>
      desired.map((cluster) =>
        cluster.owner === subset && fenced.has(cluster.name) ? { ...cluster, isFenced: true as const } : cluster,
      ),
    waits,
  };
}

/**
 * The owners while an app is paused: a cluster stays with its owner by the newest routes, if the app still has that subset.
 * @param desired undefined if the spec has no rule about clusters any more: then those of the newest routes stay
 */
export function pausedClusters(
  desired: readonly ClusterRoute[] | undefined,
  snapshots: readonly Snapshot[],
  subsets: readonly string[],
): readonly ClusterRoute[] | undefined {
  const [last] = snapshots.toSorted((a, b) => b.version - a.version);
  if (desired === undefined) {
    return last?.clusters?.map(({ isFenced: _, owner, ...cluster }) => ({
      ...cluster,
      owner: subsets.includes(owner) ? owner : DEFAULT_SUBSET,
    }));
  }
  const newest = newestWithClusters(snapshots);
  if (newest === undefined) return desired;
  return desired.map((cluster) => {
    const [owner] = cluster.servers.flatMap((server) => clusterAt(newest, server)?.owner ?? []);
    return owner === undefined || !subsets.includes(owner) ? cluster : { ...cluster, owner };
  });
}

function newestWithClusters(snapshots: readonly Snapshot[]): Snapshot | undefined {
  return snapshots.filter(({ clusters }) => clusters !== undefined).sort((a, b) => b.version - a.version)[0];
}

/** The clusters of an app that ends: first the default subset gets them, and afterwards all pods join that subset. */
export function endingClusters(snapshots: readonly Snapshot[]): readonly ClusterRoute[] {
  return (newestWithClusters(snapshots)?.clusters ?? []).map(({ name, servers, drainMs }) => ({
    name,
    servers,
    drainMs,
    owner: DEFAULT_SUBSET,
  }));
}

/** The mesh does not limit what the pod sends to clusters. A pod of the owner counts too: after a removal by force it may go on writing. */
function isUnenforced(claim: Claim): boolean {
  return claim.kind === "table" ? claim.clusters === undefined : claim.subset !== undefined;
}

/**
 * The clusters whose owners wait for a pod with the claim: those of other subsets to which it may write, or all if the mesh does
 * not limit what it sends to clusters. Pods of a subset mostly have one list of clusters.
 */
function rememberKept(desired: readonly ClusterRoute[]): (claim: Claim, isFree: boolean) => readonly ClusterRoute[] {
  const keptBy = remember((clusters: readonly ClusterRoute[]) =>
    rememberNames((subset) =>
      desired.filter(
        ({ owner, servers }) => owner !== subset && servers.some((server) => mayReach({ subset, clusters }, server)),
      ),
    ),
  );
  return (claim, isFree) => {
    if (isFree) return desired;
    if (claim.kind === "table" && claim.clusters !== undefined) return keptBy(claim.clusters)(claim.subset);
    return desired.filter(({ owner }) => owner !== claim.subset);
  };
}

/** True if a pod of the owner already enforces the cluster as its own, with all servers: so no other subset got it since. */
function isGranted({ owner, servers }: ClusterRoute, claims: readonly Claim[]): boolean {
  return claims.some((claim) => {
    if (claim.kind !== "table" || !claim.enforced || claim.subset !== owner || claim.clusters === undefined) return false;
    const view = { subset: owner, clusters: claim.clusters };
    return servers.every((server) => clusterAt(view, server) !== undefined && mayReach(view, server));
  });
}
