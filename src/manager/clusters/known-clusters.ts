// The MeshClusters of each namespace, for the plans of its apps. Every replica watches them. Invariant: apps that divide clusters get no
// plan before the first list, because a plan without a cluster would open it to every pod.
import { DEFAULT_DRAIN_SECONDS } from "../../api/mesh-cluster.ts";
import { MESH_CLUSTERS } from "../../api/resources.ts";
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import type { Informers } from "../../runtime/informers.ts";
import type { AppSpec } from "../apps/app.ts";
import { type AcceptedClusters, acceptClusters } from "./accept-clusters.ts";

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
    routes(namespace: string, ownersOf: NonNullable<AppSpec["clusterOwners"]>): ClusterRoute[] | undefined {
      if (!store.hasSynced) return undefined;
      const { accepted } = of(namespace);
      const owners = ownersOf(accepted);
      return accepted.flatMap(({ labels: _, ...cluster }) => {
        const owner = owners.get(cluster.name);
        return owner === undefined ? [] : [{ ...cluster, owner }];
      });
    },
    /** The longest drainMs; 0 without clusters, and the default before the first list. */
    longestDrainMs: (namespace: string): number =>
      Math.max(store.hasSynced ? 0 : DEFAULT_DRAIN_SECONDS * 1_000, ...of(namespace).accepted.map(({ drainMs }) => drainMs)),
    onChange: store.onChange,
    synced: store.synced,
  };
}
