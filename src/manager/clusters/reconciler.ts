// Writes the status of the MeshClusters of one namespace. The apps' plans decide who owns a cluster.
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import { MESH_CLUSTERS } from "../../api/resources.ts";
import type { Clock } from "../../base/clock.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { Reconciler } from "../../runtime/reconciler.ts";
import { writeStatus } from "../../runtime/status-writer.ts";
import type { Store } from "../../runtime/store.ts";
import type { Apps } from "../apps/app.ts";
import type { PublishedPlans } from "../apps/published-plans.ts";
import { type AppOfCluster, clusterStatus } from "./cluster-status.ts";
import type { KnownClusters } from "./known-clusters.ts";

interface ClustersReconcilerOptions {
  readonly client: Pick<KubeClient, "get" | "patch">;
  readonly store: Pick<Store<MeshCluster>, "list">;
  readonly apps: Pick<Apps, "list">;
  readonly plans: Pick<PublishedPlans, "get">;
  readonly clusters: Pick<KnownClusters, "of">;
  readonly clock: Pick<Clock, "now">;
}

/** The first plan of an app queues the namespace before that; an app that goes before it has one does not. */
const LOOK_AGAIN_MS = 5_000;

export function createClustersReconciler({ client, store, apps, plans, clusters, clock }: ClustersReconcilerOptions): Reconciler {
  const appsOf = (namespace: string, cluster: string): AppOfCluster[] =>
    apps.list(namespace).flatMap(({ ref }) => {
      const plan = plans.get(ref)?.plan;
      // Only the routes of the owner's pods show whether the owner still waits.
      const routes = [...(plan?.rules ?? [])].flatMap(([subset, rules]) =>
        (rules.clusters ?? []).filter(({ name, owner }) => name === cluster && owner === subset),
      );
      const waits = (plan?.clusterWaits ?? []).filter((wait) => wait.clusters.includes(cluster));
      return routes.slice(0, 1).map((route) => ({ app: ref.name, route, waits }));
    });
  return {
    async reconcile({ name: namespace }, signal) {
      // A new leader has no plans yet, and would say that nobody owns the clusters.
      const isEarly = apps
        .list(namespace)
        .some(({ ref, spec }) => spec?.clusterOwners !== undefined && plans.get(ref) === undefined);
      if (isEarly) return { requeueAfterMs: LOOK_AGAIN_MS };
      const { refused } = clusters.of(namespace);
      for (const object of store.list(namespace).filter(({ metadata }) => metadata.deletionTimestamp === undefined)) {
        const { name = "" } = object.metadata;
        const facts = { refused: refused.get(name), apps: appsOf(namespace, name), now: new Date(clock.now()).toISOString() };
        await writeStatus(client, MESH_CLUSTERS, object, (current) => clusterStatus({ ...facts, object: current }), { signal });
      }
      return {};
    },
  };
}
