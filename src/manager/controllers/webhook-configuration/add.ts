// What the webhook configurations follow: the VirtualApps, the mesh's CAs, and the two objects themselves. One request stands for
// both, since most changes concern both or cost nothing.

import { VIRTUAL_APPS } from "../../../api/resources.ts";
import type { VirtualApp } from "../../../api/virtual-app.ts";
import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import { MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS } from "../../../kube/client/resources.ts";
import type { KubeClient } from "../../../kube/client/types.ts";
import { type Controller, controllerOf } from "../../../runtime/controller.ts";
import type { ControllerMetrics } from "../../../runtime/controller-metrics.ts";
import type { Informers } from "../../../runtime/informers.ts";
import { anyOf, changed, generationChanged } from "../../../runtime/predicates.ts";
import type { Request } from "../../../runtime/reconciler.ts";
import { MUTATING_NAME, VALIDATING_NAME, type WebhookTarget } from "../../admission/configurations.ts";
import { type ConfigurationSize, createWebhookConfigurationReconciler } from "./reconciler.ts";

/** The CAs of the mesh, as they change. */
export interface Trust {
  readonly trustPem: string;
  onChange(listener: () => void): () => void;
}

export interface WebhookConfigurationOptions {
  readonly client: KubeClient;
  readonly informers: Informers;
  readonly identity: Trust;
  readonly target: WebhookTarget;
  readonly size: ConfigurationSize;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
  readonly clock: Clock;
}

/** A burst of VirtualApps is one write; far below the time in which somebody makes a pod after them. */
const DEBOUNCE_MS = 20;
const ALL: Request = { namespace: "", name: "webhooks" };

/** The selectors by which the two objects alone are watched, so that rights to read others are not needed. */
export const MUTATING_SELECTOR = { fieldSelector: `metadata.name=${MUTATING_NAME}` };
const VALIDATING_SELECTOR = { fieldSelector: `metadata.name=${VALIDATING_NAME}` };

export function addWebhookConfigurationController(options: WebhookConfigurationOptions): Controller {
  const { informers, identity } = options;
  const all = () => [ALL];
  const controller = controllerOf({ name: "webhook-configuration", debounceMs: DEBOUNCE_MS, ...options })
    .watches(VIRTUAL_APPS, all, { predicates: [anyOf(generationChanged, changed(isServed))] })
    .watches(MUTATING_WEBHOOK_CONFIGURATIONS, all, { selectors: MUTATING_SELECTOR })
    .watches(VALIDATING_WEBHOOK_CONFIGURATIONS, all, { selectors: VALIDATING_SELECTOR })
    .withReconciler(
      createWebhookConfigurationReconciler({
        ...options,
        apps: informers.store(VIRTUAL_APPS),
        mutating: informers.store(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_SELECTOR),
        validating: informers.store(VALIDATING_WEBHOOK_CONFIGURATIONS, VALIDATING_SELECTOR),
        trustPem: () => identity.trustPem,
      }),
    );
  let unsubscribe: () => void = () => undefined;
  return {
    name: controller.name,
    enqueue: controller.enqueue,
    async start(signal) {
      unsubscribe = identity.onChange(() => controller.enqueue(ALL));
      await controller.start(signal);
      controller.enqueue(ALL); // without a VirtualApp and without the objects, nothing else would
    },
    async stop() {
      unsubscribe();
      await controller.stop();
    },
  };
}

function isServed({ status, metadata }: VirtualApp): unknown {
  return [status?.routeVersion !== undefined, metadata.annotations, metadata.finalizers];
}
