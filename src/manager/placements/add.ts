// What the placements controller watches: the plans that proxies were sent, the apps, which may end, the MeshClusters, which may get a
// ClusterProfile, and the PlacementDecisions, which others may edit and delete. A request names an app.
import { MESH_CLUSTERS } from "../../api/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import { type Controller, changed, controllerOf } from "../../runtime/controller.ts";
import { dividesClusters } from "../apps/app.ts";
import type { PublishedPlans } from "../apps/published-plans.ts";
import { watchApps } from "../apps/watch-apps.ts";
import type { ControllerBase, ManagerContext } from "../context/manager-context.ts";
import { createDecisionStore } from "./decision-store.ts";
import { createPlacementsReconciler } from "./reconciler.ts";

/** The PlacementDecisions of an app are written at most once in this time. */
const DEBOUNCE_MS = 1_000;

interface PlacementsControllerOptions extends ControllerBase, Pick<ManagerContext, "sources" | "apps" | "events" | "clock"> {
  readonly plans: PublishedPlans;
}

export function addPlacementsController(options: PlacementsControllerOptions): Controller {
  const { informers, sources, apps, plans } = options;
  const decisions = createDecisionStore({
    ...options,
    onChange: (app) => controller.enqueue(app),
    onListed: () => {
      for (const { ref } of apps.list()) controller.enqueue(ref);
    },
  });
  const meshClusters = informers.store(MESH_CLUSTERS);
  const dividing = ({ metadata }: KubeObject) =>
    apps
      .list(metadata.namespace)
      .filter(dividesClusters)
      .map(({ ref }) => ref);
  const builder = controllerOf({ name: "placements", debounceMs: DEBOUNCE_MS, ...options }).watches(MESH_CLUSTERS, dividing, {
    predicates: [changed(({ metadata }) => metadata.ownerReferences)],
  });
  const controller: Controller = watchApps(builder, sources, plans).withReconciler(
    createPlacementsReconciler({ ...options, decisions, meshClusters }),
  );
  return controller;
}
