// What the decisions controller watches: the apps, whose rules name PlacementDecisions, and these objects. A request names a namespace.
import { type Controller, controllerOf } from "../../runtime/controller.ts";
import type { ControllerBase, ManagerContext } from "../context/manager-context.ts";
import { createDecisionWatch } from "./decision-watch.ts";
import type { KnownDecisions } from "./known-decisions.ts";
import { createDecisionsReconciler } from "./reconciler.ts";

/** Gathers the slices of a decision, which a program writes one after the other. */
const DEBOUNCE_MS = 1_000;

interface DecisionsControllerOptions extends ControllerBase, Pick<ManagerContext, "apps" | "events" | "clock"> {
  readonly decisions: KnownDecisions;
}

export function addDecisionsController(options: DecisionsControllerOptions): Controller {
  const requestOf = (namespace = "") => ({ namespace: "", name: namespace });
  const watch = createDecisionWatch({ ...options, onChange: (namespace) => controller.enqueue(requestOf(namespace)) });
  const controller: Controller = controllerOf({ name: "decisions", debounceMs: DEBOUNCE_MS, ...options })
    .on(options.apps.onChange, ({ object }) => [requestOf(object.metadata.namespace)])
    .withReconciler(createDecisionsReconciler({ ...options, watch }));
  return controller;
}
