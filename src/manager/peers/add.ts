// What the peers controller watches: the apps with a webhook server, their pods, and the registrations of the
// proxies. A request names an app.
import { type Controller, controllerOf } from "../../runtime/controller.ts";
import { parseRequest } from "../../runtime/reconciler.ts";
import type { ControllerBase, ManagerContext } from "../context/manager-context.ts";
import { createPeersReconciler } from "./reconciler.ts";

/** So an app's proxies get at most ten lists in a second, however many of its pods start together. */
const DEBOUNCE_MS = 100;

export type PeersControllerOptions = ControllerBase & Pick<ManagerContext, "apps" | "pods" | "registry" | "clock">;

export function addPeersController(options: PeersControllerOptions): Controller {
  const { apps, pods, registry } = options;
  const appsIn = (namespace = "") => apps.list(namespace).flatMap(({ ref, spec }) => (spec?.webhook === undefined ? [] : [ref]));
  return controllerOf({ name: "peers", debounceMs: DEBOUNCE_MS, ...options })
    .on(pods.onListed, appsIn)
    .on(pods.onChange, ({ object }) => appsIn(object.metadata.namespace))
    .on(registry.onChange, (pod) => appsIn(parseRequest(pod).namespace))
    .on(apps.onChange, ({ object }) => appsIn(object.metadata.namespace))
    .withReconciler(createPeersReconciler(options));
}
