// What the controller of the namespaces of other clusters watches: the MeshClusters, and the apps that divide them. A request names a
// namespace.
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import { type Controller, changed, controllerOf, generationChanged } from "../../runtime/controller.ts";
import type { Store } from "../../runtime/store.ts";
import type { AcceptedClusters } from "../apps/accept-clusters.ts";
import type { ControllerBase, ManagerContext } from "../context/manager-context.ts";
import { createClusterNamespacesReconciler } from "./reconciler.ts";
import type { WatchedClusters } from "./watched-clusters.ts";

const DEBOUNCE_MS = 200;

interface ClusterNamespacesOptions extends ControllerBase, Pick<ManagerContext, "apps" | "sources" | "random"> {
  readonly clusters: { readonly of: (namespace: string) => AcceptedClusters } & Pick<Store<MeshCluster>, "onChange">;
  readonly watched: WatchedClusters;
}

export function addClusterNamespacesController(options: ClusterNamespacesOptions): Controller {
  const requestOf = (namespace = "") => [{ namespace: "", name: namespace }];
  const builder = controllerOf({ name: "cluster-namespaces", debounceMs: DEBOUNCE_MS, ...options });
  return options.sources
    .reduce(
      (each, source) =>
        each.watches(source.resource, ({ metadata }) => requestOf(metadata.namespace), { predicates: [generationChanged] }),
      // Not a watch of the controller: a home cluster without this kind has nothing to wait for.
      builder.on(options.clusters.onChange, (change) => (isOther(change) ? requestOf(change.object.metadata.namespace) : [])),
    )
    .withReconciler(createClusterNamespacesReconciler(options));
}

const isOther = changed(({ spec, metadata: { deletionTimestamp } }: MeshCluster) => [spec, deletionTimestamp]);
