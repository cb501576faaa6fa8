// What the slices controller watches: the plans that proxies were sent, the metadata of the slices, since others may edit and
// delete them, and the apps, which may end. A request names an app.
import { OWNERSHIP_SLICES } from "../../api/resources.ts";
import { metadataOnly } from "../../kube/client/resource.ts";
import { type Controller, controllerOf } from "../../runtime/controller.ts";
import type { PublishedPlans } from "../apps/published-plans.ts";
import { watchApps } from "../apps/watch-apps.ts";
import type { ControllerBase, ManagerContext } from "../context/manager-context.ts";
import { createSlicesReconciler } from "./reconciler.ts";
import { appNameOf } from "./slice-object.ts";

/** The slices of an app are written at most once in this time. A move that is over by then is one write. */
const DEBOUNCE_MS = 1_000;

interface SlicesControllerOptions extends ControllerBase, Pick<ManagerContext, "sources" | "apps" | "events" | "clock"> {
  readonly plans: PublishedPlans;
  /** False: all slices are deleted. */
  readonly isOn: boolean;
}

export function addSlicesController(options: SlicesControllerOptions): Controller {
  const { informers, sources, plans } = options;
  const slices = informers.store(metadataOnly(OWNERSHIP_SLICES));
  const builder = controllerOf({ name: "slices", debounceMs: DEBOUNCE_MS, ...options }).watches(
    metadataOnly(OWNERSHIP_SLICES),
    (slice) => [{ namespace: slice.metadata.namespace ?? "", name: appNameOf(slice) }],
  );
  return watchApps(builder, sources, plans).withReconciler(createSlicesReconciler({ ...options, slices }));
}
