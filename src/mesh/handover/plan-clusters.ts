// The handover of clusters, as plan-fences.ts has that of namespaces. A pure function of the owners by the spec and the claims,
// without memory. Invariant: a subset gets a cluster only when no live pod of another subset may still send requests to any of
// its servers. A pod that does not know a server may.
import { remember, rememberNames } from "../../base/remember.ts";
import { type ClusterRoute, clusterAt, mayReach } from "../ownership/clusters.ts";
import type { Snapshot } from "../ownership/snapshot.ts";
import { DEFAULT_SUBSET } from "../ownership/table.ts";
import type { Claim } from "./claims.ts";
import { causeOf, type WaitCause } from "./plan-fences.ts";

/** A pod that may still send requests to clusters of another subset, or goes around the mesh. */
export interface ClusterWait {
  readonly podName: string;
  /** Undefined if not known. */
  readonly subset: string | undefined;
  /** "not-enforced": its proxy does not see what the pod sends to other servers, or is of an earlier version. */
  readonly cause: WaitCause | "not-enforced";
  /** Names. */
  readonly clusters: readonly string[];
}

export interface ClusterPlan {
  /** The clusters as the pods of a subset get them. */
  clustersOf(subset: string): readonly ClusterRoute[];
  /** Also of pods that keep no owner from its cluster, because it had the cluster before they came. */
  readonly waits: readonly ClusterWait[];
}

/** @param desired the owners by the spec, without fences */
export function planClusters(desired: readonly ClusterRoute[], claims: readonly Claim[]): ClusterPlan {
  const fenced = new Set<string>();
  const isHad = remember((cluster: ClusterRoute) => isGranted(cluster, claims));
  const keptBy = rememberKept(desired);
  const waits = claims.flatMap((claim): ClusterWait[] => {
    const isFree = isUnenforced(claim);
    const kept = keptBy(claim, isFree);
    // Routes that allow what a granted cluster's owner has are newer than the grant: the app had no rule about the cluster meanwhile.
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

/** The owners of a paused app: a cluster stays with the subset that has it by the newest routes, if the spec still has that. */
export function pausedClusters(
  desired: readonly ClusterRoute[],
  snapshots: readonly Snapshot[],
  subsets: readonly string[],
): readonly ClusterRoute[] {
  const [newest] = snapshots.filter(({ clusters }) => clusters !== undefined).sort((a, b) => b.version - a.version);
  if (newest === undefined) return desired;
  return desired.map((cluster) => {
    const [owner] = cluster.servers.flatMap((server) => clusterAt(newest, server)?.owner ?? []);
    return owner === undefined || !subsets.includes(owner) ? cluster : { ...cluster, owner };
  });
}

/** The clusters of an app that ends: the default subset gets them first, and all pods join it afterwards. */
export function endingClusters(snapshots: readonly Snapshot[]): readonly ClusterRoute[] {
  const [newest] = snapshots.filter(({ clusters }) => clusters !== undefined).sort((a, b) => b.version - a.version);
  return (newest?.clusters ?? []).map(({ name, servers, drainMs }) => ({ name, servers, drainMs, owner: DEFAULT_SUBSET }));
}

/** The pod goes around the mesh, also one of the owner: nothing would stop it if it was removed by force. */
function isUnenforced(claim: Claim): boolean {
  return claim.kind === "table" ? claim.clusters === undefined : claim.subset !== undefined;
}

/**
 * The clusters for which a pod with the claim is waited: those of other subsets to which it may write, and all if it goes around
 * the mesh. Pods of a subset mostly have one list of clusters.
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

/** True if a pod of the owner already enforces the cluster as its own, with all its servers. Nobody got it since (plan-fences.ts). */
function isGranted({ owner, servers }: ClusterRoute, claims: readonly Claim[]): boolean {
  return claims.some((claim) => {
    if (claim.kind !== "table" || !claim.enforced || claim.subset !== owner || claim.clusters === undefined) return false;
    const view = { subset: owner, clusters: claim.clusters };
    return servers.every((server) => clusterAt(view, server) !== undefined && mayReach(view, server));
  });
}
