// The MeshClusters of each namespace, for the plans of its apps. Every replica watches them. Invariant: apps that divide clusters get no
// plan before the first list, because a plan without a cluster would open it to every pod.
import { DEFAULT_DRAIN_SECONDS } from "../../api/mesh-cluster.ts";
import { MESH_CLUSTERS } from "../../api/resources.ts";
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import type { Informers } from "../../runtime/informers.ts";
import { type AcceptedCluster, type AcceptedClusters, acceptClusters } from "../apps/accept-clusters.ts";
import type { App } from "../apps/app.ts";
import { NONE_CHOSEN } from "../apps/chosen-clusters.ts";
import { clusterRoutes } from "../apps/cluster-routes.ts";
import { plannedClusters } from "../apps/planned-clusters.ts";
import type { OwnershipPlan } from "../apps/published-plans.ts";
import type { KnownDecisions } from "../decisions/known-decisions.ts";

export type KnownClusters = ReturnType<typeof createKnownClusters>;

export function createKnownClusters(informers: Pick<Informers, "store">, decisions: Pick<KnownDecisions, "of" | "onChange">) {
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
    get hasSynced() {
      return store.hasSynced;
    },
    /**
     * The clusters of an app with the owners that its spec names, without fences. Undefined until the first list, also of the
     * PlacementDecisions if the app's rules name some.
     * @param published the last plan of the app, which is newer than the statuses of the MeshClusters. Absent: this manager has none yet.
     */
    routes({ ref, spec }: Pick<App, "ref" | "spec">, published?: OwnershipPlan): readonly ClusterRoute[] | undefined {
      const { clusterOwners, decisionKeys = [] } = spec ?? {};
      const chosen = decisionKeys.length === 0 ? NONE_CHOSEN : decisions.of(ref.namespace);
      if (clusterOwners === undefined || chosen === undefined || !store.hasSynced) return undefined;
      const { accepted } = of(ref.namespace);
      return clusterRoutes(published ? withOwners(accepted, ref.name, published) : accepted, clusterOwners, chosen);
    },
    decisions,
    /** The longest drainMs; 0 without clusters, and the default before the first list. */
    longestDrainMs: (namespace: string): number =>
      Math.max(store.hasSynced ? 0 : DEFAULT_DRAIN_SECONDS * 1_000, ...of(namespace).accepted.map(({ drainMs }) => drainMs)),
    onChange: store.onChange,
    synced: store.synced,
  };
}

/** Statuses are written one after the other, so some have the owners of an earlier plan. */
function withOwners(accepted: readonly AcceptedCluster[], app: string, plan: OwnershipPlan): readonly AcceptedCluster[] {
  const owners = new Map(plannedClusters(plan).map(({ name, owner }) => [name, owner]));
  return accepted.map(({ owners: _, ...cluster }) => {
    const owner = owners.get(cluster.name);
    return owner === undefined ? cluster : { ...cluster, owners: new Map([[app, owner]]) };
  });
}
