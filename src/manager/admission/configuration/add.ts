// What the webhook-configuration controller watches: the apps, the CAs of the mesh, and the two objects
// themselves. One request covers both objects, because most changes concern both.
import { MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS } from "../../../kube/client/resources.ts";
import { anyOf, type Controller, changed, controllerOf, generationChanged } from "../../../runtime/controller.ts";
import type { Request } from "../../../runtime/reconciler.ts";
import type { SourceObject } from "../../apps/app.ts";
import { MUTATING_SELECTOR, VALIDATING_SELECTOR } from "./configurations.ts";
import { createWebhookConfigurationReconciler, type WebhookConfigurationOptions } from "./reconciler.ts";

/** Makes a burst of new apps one write. Users take much longer to create the first pod. */
const DEBOUNCE_MS = 20;
const ALL: Request = { namespace: "", name: "webhooks" };

export function addWebhookConfigurationController(options: WebhookConfigurationOptions): Controller {
  const { identity, sources } = options;
  const all = () => [ALL];
  return sources
    .reduce(
      (builder, { resource }) => builder.watches(resource, all, { predicates: [anyOf(generationChanged, changed(isServed))] }),
      controllerOf({ name: "webhook-configuration", debounceMs: DEBOUNCE_MS, ...options }),
    )
    .watches(MUTATING_WEBHOOK_CONFIGURATIONS, all, { selectors: MUTATING_SELECTOR })
    .watches(VALIDATING_WEBHOOK_CONFIGURATIONS, all, { selectors: VALIDATING_SELECTOR })
    .on<void>(identity.onChange, all)
    .on<void>((queue) => queue(), all) // otherwise nothing queues it if there is no app and no object
    .withReconciler(createWebhookConfigurationReconciler(options));
}

function isServed({ status, metadata }: SourceObject): unknown {
  return [status?.routeVersion !== undefined, metadata.annotations, metadata.finalizers];
}
