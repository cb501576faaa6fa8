// What the clusters controller watches: the MeshClusters, the apps that divide them, their plans, the PlacementDecisions that their rules
// name, and what is known of the clusters' namespaces. A request names a namespace.
import { MESH_CLUSTERS } from "../../api/resources.ts";
import { type Controller, controllerOf, generationChanged } from "../../runtime/controller.ts";
import type { EventRecorder } from "../../runtime/events.ts";
import type { PublishedPlans } from "../apps/published-plans.ts";
import type { WatchedClusters } from "../cluster-namespaces/watched-clusters.ts";
import type { ControllerBase, ManagerContext } from "../context/manager-context.ts";
import type { KnownClusters } from "./known-clusters.ts";
import { createClustersReconciler } from "./reconciler.ts";

/** The statuses of a namespace are written at most once in this time. */
const DEBOUNCE_MS = 500;

interface ClustersControllerOptions extends ControllerBase, Pick<ManagerContext, "apps" | "clock"> {
  readonly events: Pick<EventRecorder, "event">;
  readonly plans: PublishedPlans;
  readonly clusters: KnownClusters;
  readonly watched: Pick<WatchedClusters, "stateOf" | "endsOf" | "onState">;
}

export function addClustersController(options: ClustersControllerOptions): Controller {
  const { informers, apps, plans, clusters, watched } = options;
  const requestOf = (namespace = "") => [{ namespace: "", name: namespace }];
  return controllerOf({ name: "clusters", debounceMs: DEBOUNCE_MS, ...options })
    .watches(MESH_CLUSTERS, ({ metadata }) => requestOf(metadata.namespace), { predicates: [generationChanged] })
    .on(plans.onChange, ({ namespace }) => requestOf(namespace))
    .on(apps.onChange, (change) => (generationChanged(change) ? requestOf(change.object.metadata.namespace) : []))
    .on(clusters.decisions.onChange, requestOf)
    .on(watched.onState, ({ namespace }) => requestOf(namespace))
    .withReconciler(createClustersReconciler({ ...options, store: informers.store(MESH_CLUSTERS) }));
}
