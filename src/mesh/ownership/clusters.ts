// Other clusters than the one of the operator's pods: which subset owns each. Pure. Invariant: a server that no cluster lists
// belongs to everyone, so a pod that does not know a cluster may write to it.
import { remember } from "../../base/remember.ts";

/** A cluster that the app divides. The proxy knows it by its servers alone: what is sent to them is encrypted. */
export interface ClusterRoute {
  /** Name of the MeshCluster. */
  readonly name: string;
  /** host:port of each address of its API server, in the form of `canonicalHost`. */
  readonly servers: readonly string[];
  /** How long a request may run that its API server has accepted, in milliseconds. */
  readonly drainMs: number;
  /** The subset that owns it. */
  readonly owner: string;
  /** The owner may not write yet, since a pod of another subset may still do so. */
  readonly isFenced?: true | undefined;
}

/** The clusters as a pod knows them. */
export interface ClusterView {
  readonly subset: string;
  readonly clusters?: readonly ClusterRoute[] | undefined;
}

export type ClusterAccess = "own" | "other-subset" | "moving";

const byServer = remember(
  (clusters: readonly ClusterRoute[]) =>
    new Map(clusters.flatMap((cluster) => cluster.servers.map((server) => [server, cluster] as const))),
);

/** Undefined if no cluster lists the server. @param server host:port */
export function clusterAt({ clusters = [] }: Pick<ClusterView, "clusters">, server: string): ClusterRoute | undefined {
  return byServer(clusters).get(server);
}

export function accessTo({ owner, isFenced }: ClusterRoute, subset: string): ClusterAccess {
  if (owner !== subset) return "other-subset";
  return isFenced ? "moving" : "own";
}

/** True if the pod may send requests to the server. */
export function mayReach(view: ClusterView, server: string): boolean {
  const cluster = clusterAt(view, server);
  return cluster === undefined || accessTo(cluster, view.subset) === "own";
}
