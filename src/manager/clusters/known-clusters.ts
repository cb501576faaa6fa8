// The MeshClusters of each namespace, for the plans of its apps. Every replica watches them. Invariant: apps that divide clusters get no
// plan before the first list, because a plan without a cluster would open it to every pod.
import { DEFAULT_DRAIN_SECONDS } from "../../api/mesh-cluster.ts";
import { MESH_CLUSTERS } from "../../api/resources.ts";
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import type { Informers } from "../../runtime/informers.ts";
import { type AcceptedClusters, acceptClusters } from "../apps/accept-clusters.ts";
import { type ClusterOwners, clusterRoutes } from "../apps/cluster-routes.ts";

export type KnownClusters = ReturnType<typeof createKnownClusters>;

export function createKnownClusters(informers: Pick<Informers, "store">) {
  const store = informers.store(MESH_CLUSTERS);
  const byNamespace = new Map<string, AcceptedClusters>();
  store.onChange(({ object }) => void byNamespace.delete(object.metadata.namespace ?? ""));
  const of = (namespace: string): AcceptedClusters => {
    const known = byNamespace.get(namespace) ?? acceptClusters(store.list(namespace));
    byNamespace.set(namespace, known);
    return known;
  };
  return {
    of,
    /** The clusters with the owners that a spec names, without fences; undefined until the first list. */
    routes: (namespace: string, ownersOf: ClusterOwners): readonly ClusterRoute[] | undefined =>
      store.hasSynced ? clusterRoutes(of(namespace).accepted, ownersOf) : undefined,
    /** The longest drainMs; 0 without clusters, and the default before the first list. */
    longestDrainMs: (namespace: string): number =>
      Math.max(store.hasSynced ? 0 : DEFAULT_DRAIN_SECONDS * 1_000, ...of(namespace).accepted.map(({ drainMs }) => drainMs)),
    onChange: store.onChange,
    synced: store.synced,
  };
}
