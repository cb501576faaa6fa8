// What the peers controller watches: the apps with a webhook server, their pods, and the registrations of the
// proxies. A request names an app.
import { type Controller, controllerOf } from "../../runtime/controller.ts";
import { parseRequest } from "../../runtime/reconciler.ts";
import type { ControllerBase, ManagerContext } from "../context/manager-context.ts";
import { createPeersReconciler } from "./reconciler.ts";

/** So an app's proxies get at most ten lists in a second, however many of its pods start at once. */
const DEBOUNCE_MS = 100;

export type PeersControllerOptions = ControllerBase & Pick<ManagerContext, "apps" | "pods" | "registry" | "clock">;

export function addPeersController(options: PeersControllerOptions): Controller {
  const { apps, pods, registry } = options;
  const controller = controllerOf({ name: "peers", debounceMs: DEBOUNCE_MS, ...options }).withReconciler(
    createPeersReconciler(options),
  );
  const enqueue = (namespace = "") => {
    for (const { ref, spec } of apps.list(namespace)) if (spec?.webhook !== undefined) controller.enqueue(ref);
  };
  pods.onListed(enqueue);
  pods.onChange(({ object }) => enqueue(object.metadata.namespace));
  registry.onChange((pod) => enqueue(parseRequest(pod).namespace));
  apps.onChange(({ object }) => enqueue(object.metadata.namespace));
  return controller;
}
