// What the condition InjectionReady follows: the VirtualApp, and the webhook configuration as the API server shows it.

import { VIRTUAL_APPS } from "../../../api/resources.ts";
import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import { MUTATING_WEBHOOK_CONFIGURATIONS } from "../../../kube/client/resources.ts";
import type { KubeClient } from "../../../kube/client/types.ts";
import { type Controller, controllerOf } from "../../../runtime/controller.ts";
import type { ControllerMetrics } from "../../../runtime/controller-metrics.ts";
import { selfRequest } from "../../../runtime/controller-source.ts";
import type { Informers } from "../../../runtime/informers.ts";
import { annotationsChanged, anyOf, generationChanged } from "../../../runtime/predicates.ts";
import type { WebhookTarget } from "../../admission/configurations.ts";
import { MUTATING_SELECTOR } from "../webhook-configuration/add.ts";
import type { ConfigurationSize } from "../webhook-configuration/reconciler.ts";
import { createInjectionStatusReconciler } from "./reconciler.ts";

export interface InjectionStatusOptions {
  readonly client: KubeClient;
  readonly informers: Informers;
  readonly target: WebhookTarget;
  readonly size: ConfigurationSize;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
}

export function addInjectionStatusController(options: InjectionStatusOptions): Controller {
  const { informers } = options;
  const apps = informers.store(VIRTUAL_APPS);
  return controllerOf({ name: "injection-status", ...options })
    .for(VIRTUAL_APPS, { predicates: [anyOf(generationChanged, annotationsChanged)] })
    .watches(MUTATING_WEBHOOK_CONFIGURATIONS, () => apps.list().flatMap(selfRequest), { selectors: MUTATING_SELECTOR })
    .withReconciler(
      createInjectionStatusReconciler({
        ...options,
        apps,
        mutating: informers.store(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_SELECTOR),
      }),
    );
}
