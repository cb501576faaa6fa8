// The MeshClusters of each namespace, for the plans of its apps. Every replica follows them. Invariant: nothing is said of them before
// they have been listed: a plan without a cluster opens it to every pod.
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
    /** The owners by a spec, without fences; undefined until the clusters have been listed. */
    routes(namespace: string, ownersOf: NonNullable<AppSpec["clusterOwners"]>): ClusterRoute[] | undefined {
      if (!store.hasSynced) return undefined;
      const { accepted } = of(namespace);
      const owners = ownersOf(accepted);
      return accepted.flatMap(({ labels: _, ...cluster }) => {
        const owner = owners.get(cluster.name);
        return owner === undefined ? [] : [{ ...cluster, owner }];
      });
    },
    /** The longest time that a request to a cluster may still run, in milliseconds; 0 without clusters, the default until they are listed. */
    longestDrainMs: (namespace: string): number =>
      Math.max(store.hasSynced ? 0 : DEFAULT_DRAIN_SECONDS * 1_000, ...of(namespace).accepted.map(({ drainMs }) => drainMs)),
    onChange: store.onChange,
    synced: store.synced,
  };
}
