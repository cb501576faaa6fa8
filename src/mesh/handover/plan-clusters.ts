// The handover of clusters; plan-fences.ts does the same for namespaces. A pure function of the claims and of the owners that the
// spec names, without memory. Invariant: a subset gets a cluster only when no live pod of another subset may still send requests
// to any of its servers, or see any of its objects at home. A pod that does not know a server may do so. An object that a granted
// cluster gets is hidden from other subsets as soon as they have the new routes.
import { once, remember, rememberNames } from "../../base/remember.ts";
import { CLUSTER_REQUESTS, CLUSTER_SERVERS } from "../contract/route-type.ts";
import {
  accessTo,
  type ClusterAccess,
  type ClusterRoute,
  type ClusterView,
  clusterAt,
  clusterOf,
  type HomeObject,
  mayReach,
  maySee,
} from "../ownership/clusters.ts";
import type { AppPod } from "./app-pod.ts";
import type { Claim, ClaimOfTable } from "./claims.ts";
import { causeOf, type WaitCause } from "./plan-fences.ts";
import { type FactsOf, type ProxyFacts, podKey } from "./proxy-facts.ts";

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

/** A cluster that a pod of its owner cannot reach. */
export interface ClusterTrouble {
  readonly podName: string;
  readonly cluster: string;
  readonly reason: string;
}

/** What the proxies of the owners report, and the pods whose proxies cannot serve a cluster with an upstream. */
export function clusterTroubles(
  owned: readonly ClusterRoute[],
  pods: readonly AppPod[],
  factsOf: FactsOf,
): readonly ClusterTrouble[] {
  const clusterBy = new Map(owned.map((cluster) => [cluster.name, cluster]));
  const isUsedBy = (subset: string, cluster: ClusterRoute | undefined) =>
    cluster !== undefined && (cluster.owner === subset || cluster.upstream !== undefined);
  const tooOld = owned.flatMap(({ name, upstream }) =>
    upstream === undefined
      ? []
      : pods.flatMap((pod) => (isTooOld(factsOf(podKey(pod))) ? [{ podName: pod.name, cluster: name, reason: TOO_OLD }] : [])),
  );
  const reported = pods.flatMap((pod) =>
    (factsOf(podKey(pod))?.clusters.unreachable ?? []).flatMap(({ cluster, reason }) =>
      isUsedBy(pod.subset, clusterBy.get(cluster)) ? [{ podName: pod.name, cluster, reason }] : [],
    ),
  );
  return [...reported, ...tooOld];
}

const TOO_OLD = "its proxy is of an earlier version, which serves no requests to the cluster: restart the pod";

function isTooOld(facts: ProxyFacts | undefined): boolean {
  return facts?.connected === true && facts.capabilities.has(CLUSTER_SERVERS) && !facts.capabilities.has(CLUSTER_REQUESTS);
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
  const isGrantedAlready = remember((cluster: ClusterRoute) => isGranted(cluster, claims));
  const keptBy = rememberKept(desired);
  const waits = claims.flatMap((claim): ClusterWait[] => {
    const kept = keptBy(claim);
    // If routes let another subset reach a granted cluster, they are newer than the grant: the app had no rule about it for a time.
    const isAfterGrant = claim.kind === "table" && claim.clusters !== undefined;
    for (const cluster of kept)
      if (claim.subset !== cluster.owner && (isAfterGrant || !isGrantedAlready(cluster))) fenced.add(cluster.name);
    const { podName, subset } = claim;
    const isFree = (cluster: ClusterRoute) => claim.kind === "table" && !isEnforced(claim, cluster);
    return [...Map.groupBy(kept, (cluster) => (isFree(cluster) ? "not-enforced" : causeOf(claim)))].map(([cause, clusters]) => ({
      podName,
      subset,
      cause,
      clusters: clusters.map(({ name }) => name),
    }));
  });
  return {
    clustersOf: (subset) =>
      desired.map((cluster) =>
        cluster.owner === subset && fenced.has(cluster.name) ? { ...cluster, isFenced: true as const } : cluster,
      ),
    waits,
  };
}

/** False if the mesh does not limit how the pod uses the cluster. */
function isEnforced({ clusters, hidesObjectsOnly }: ClaimOfTable, { isOpen }: ClusterRoute): boolean {
  return clusters !== undefined && (isOpen === true || hidesObjectsOnly !== true);
}

/**
 * The clusters whose owners wait for a pod with the claim: those of other subsets that it may use, and all that the mesh does not limit. Of
 * the latter a pod of the owner counts too: after a removal by force it may go on writing. Pods of a subset mostly have one list of
 * clusters.
 */
function rememberKept(desired: readonly ClusterRoute[]): (claim: Claim) => readonly ClusterRoute[] {
  const keptBy = remember((clusters: readonly ClusterRoute[]) =>
    rememberNames((subset) => desired.filter((cluster) => cluster.owner !== subset && mayUse(cluster, { subset, clusters }))),
  );
  return (claim) => {
    if (claim.kind === "everything" || claim.clusters === undefined) return desired;
    const used = keptBy(claim.clusters)(claim.subset);
    return claim.hidesObjectsOnly ? desired.filter((cluster) => !isEnforced(claim, cluster) || used.includes(cluster)) : used;
  };
}

/**
 * True if the pod may send requests to one of the cluster's servers, also through its proxy, or see one of its objects. An object that its
 * routes do not name does not count if they give the cluster to another subset: the pod saw it before, and could write nothing by it.
 */
function mayUse(cluster: ClusterRoute, view: ClusterView): boolean {
  const { servers, objects = [], isOpen } = cluster;
  const mayWrite = (server: string) => mayReach(view, server) || clusterAt(view, server)?.upstream !== undefined;
  const access = once(() => accessBefore(cluster, view));
  const isSeen = (object: HomeObject) =>
    clusterOf(view, object) === undefined ? [undefined, "own"].includes(access()) : maySee(view, object);
  return (!isOpen && servers.some(mayWrite)) || objects.some(isSeen);
}

/** Undefined if the routes do not name the cluster by any of its servers. */
function accessBefore({ servers }: ClusterRoute, { subset, clusters = [] }: ClusterView): ClusterAccess | undefined {
  const before = clusters.find((each) => each.servers.some((server) => servers.includes(server)));
  return before && accessTo(before, subset);
}

/** True if a pod of the owner already enforces the cluster as its own, with all servers: so no other subset got it since. */
function isGranted(cluster: ClusterRoute, claims: readonly Claim[]): boolean {
  const { owner, servers, objects = [], isOpen } = cluster;
  return claims.some((claim) => {
    if (claim.kind !== "table" || !claim.enforced || claim.subset !== owner || claim.clusters === undefined) return false;
    const view = { subset: owner, clusters: claim.clusters };
    const isOwn = (each: ClusterRoute | undefined) => each !== undefined && accessTo(each, owner) === "own";
    return (
      (isOpen ? accessBefore(cluster, view) === "own" : servers.every((server) => isOwn(clusterAt(view, server)))) &&
      objects.every((object) => maySee(view, object))
    );
  });
}
