// Which subset owns each of the other clusters that an operator works on. Pure. Invariant: every pod may send to a server that no
// cluster lists, so a pod that does not know a cluster may write to it.
import { remember } from "../../base/remember.ts";
import type { GroupResource } from "../../kube/types.ts";

/**
 * How long a proxy lets a pod write to other clusters after the API server at home has last accepted the pod's token, in
 * milliseconds. After a removal by force, the manager waits for this and the token cache (10 s).
 */
export const PROOF_MS = 8_000;

/** Under this path, and the name of a cluster, the proxies serve clusters with an upstream. */
export const CLUSTERS_PATH = "/_ctrlmesh/clusters/";

/** How long a server may work on a request if no MeshCluster says it: the default of an API server's --request-timeout. */
export const DEFAULT_DRAIN_MS = 60_000;

/** An object at home by which the operator finds a cluster: in the app's namespace, or cluster-scoped. */
export interface HomeObject extends GroupResource {
  readonly name: string;
}

/** How the proxies reach the API server of a cluster whose TLS they terminate. */
export interface ClusterUpstream {
  /** https URL; its path is put before the path of each request. */
  readonly url: string;
  /** Of each URL of the cluster, host:port and path: behind one host and port may be several clusters. Absent: any path. */
  readonly paths?: readonly string[] | undefined;
  /** PEM certificates of the CAs that may have signed its certificate. Absent: the CAs of the system. */
  readonly ca?: string | undefined;
  /** The name in its certificate. Absent: the host of the URL. */
  readonly serverName?: string | undefined;
}

/** A cluster that the app divides between its subsets. The proxy knows only its servers: what is sent to them is encrypted. */
export interface ClusterRoute {
  /** Name of the MeshCluster. */
  readonly name: string;
  /** host:port of each address of its API server, in the form of `canonicalHost`. */
  readonly servers: readonly string[];
  /** How long its API server may work on a request that it has accepted, in milliseconds. */
  readonly drainMs: number;
  /**
   * The proxies terminate the TLS of the operator's requests, and divide the cluster's namespaces by a table of its own (see
   * Snapshot.clusterTables). No pod may connect to the servers by itself, so `isFenced` is true.
   */
  readonly upstream?: ClusterUpstream | undefined;
  /** Every pod may send requests to the servers: only the objects follow the owner. Absent is false. */
  readonly isOpen?: true | undefined;
  /** Only pods that own the cluster see these objects. Absent: none. */
  readonly objects?: readonly HomeObject[] | undefined;
  /** The subset that owns it. */
  readonly owner: string;
  /** The owner may not write yet, since a pod of another subset may still do so. */
  readonly isFenced?: true | undefined;
}

/** The pod's subset, and the clusters that its routes name. */
export interface ClusterView {
  readonly subset: string;
  readonly clusters?: readonly ClusterRoute[] | undefined;
}

export type ClusterAccess = "own" | "other-subset" | "moving";

const byServer = remember((clusters: readonly ClusterRoute[]) => {
  const uses = clusters.flatMap((cluster) => cluster.servers.map((server) => ({ server, cluster })));
  return Map.groupBy(uses, ({ server }) => server);
});

function clustersAt({ clusters = [] }: Pick<ClusterView, "clusters">, server: string): readonly ClusterRoute[] {
  return (byServer(clusters).get(server) ?? []).map(({ cluster }) => cluster);
}

const byObject = remember(
  (clusters: readonly ClusterRoute[]) =>
    new Map(clusters.flatMap((cluster) => (cluster.objects ?? []).map((object) => [objectKey(object), cluster] as const))),
);

function objectKey({ group, resource, name }: HomeObject): string {
  return `${group}/${resource}/${name}`;
}

/** The clusters of the view that may be this one under another name: they have a server in common, and of two with paths a path. */
export function sameClusters(view: Pick<ClusterView, "clusters">, cluster: ClusterRoute): readonly ClusterRoute[] {
  const paths = cluster.upstream?.paths;
  const isSame = ({ name, upstream }: ClusterRoute) =>
    name === cluster.name || paths === undefined || (upstream?.paths?.some((path) => paths.includes(path)) ?? true);
  return [...new Set(cluster.servers.flatMap((server) => clustersAt(view, server)))].filter(isSame);
}

/**
 * Undefined if no cluster limits who may send requests to the server. Of several behind one host and port, all of which the proxies serve
 * themselves, it is any. @param server host:port
 */
export function clusterAt(view: Pick<ClusterView, "clusters">, server: string): ClusterRoute | undefined {
  return clustersAt(view, server).find(({ isOpen }) => !isOpen);
}

export function accessTo({ owner, isFenced }: ClusterRoute, subset: string): ClusterAccess {
  if (owner !== subset) return "other-subset";
  return isFenced ? "moving" : "own";
}

/** Undefined if no cluster lists the object. */
export function clusterOf({ clusters = [] }: Pick<ClusterView, "clusters">, object: HomeObject): ClusterRoute | undefined {
  return byObject(clusters).get(objectKey(object));
}

/** True if the pod may see the object, as far as clusters decide. */
export function maySee(view: ClusterView, object: HomeObject): boolean {
  const cluster = clusterOf(view, object);
  return cluster === undefined || accessTo(cluster, view.subset) === "own";
}

/** True if the pod may send requests to the server. */
export function mayReach(view: ClusterView, server: string): boolean {
  const cluster = clusterAt(view, server);
  return cluster === undefined || accessTo(cluster, view.subset) === "own";
}
