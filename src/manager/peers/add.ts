// What the peers controller watches: the apps with a webhook server, their pods, and the registrations of the
// proxies. A request names an app.
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { type Controller, controllerOf } from "../../runtime/controller.ts";
import type { ControllerMetrics } from "../../runtime/controller-metrics.ts";
import type { Informers } from "../../runtime/informers.ts";
import { parseRequest } from "../../runtime/reconciler.ts";
import type { Apps } from "../apps/app.ts";
import type { PodWatch } from "../facts/pod-watch.ts";
import type { ProxyRegistry } from "../server/proxy-registry.ts";
import { createPeersReconciler } from "./reconciler.ts";

/** So an app's proxies get at most ten lists in a second, however many of its pods start at once. */
const DEBOUNCE_MS = 100;

export interface PeersControllerOptions {
  readonly client: KubeClient;
  readonly informers: Informers;
  readonly apps: Apps;
  readonly pods: PodWatch;
  readonly registry: ProxyRegistry;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
}

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
