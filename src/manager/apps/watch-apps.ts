// What a controller watches whose requests name apps: the objects of every kind of app, and the plans that proxies were sent.
import { type ControllerBuilder, generationChanged } from "../../runtime/controller.ts";
import type { Source } from "./app.ts";
import type { PublishedPlans } from "./published-plans.ts";

export function watchApps(
  builder: ControllerBuilder,
  sources: readonly Source[],
  plans: Pick<PublishedPlans, "onChange">,
): ControllerBuilder {
  return sources.reduce(
    (each, source) =>
      each.watches(
        source.resource,
        (object) => [{ namespace: object.metadata.namespace ?? "", name: source.appNameOf(object) }],
        { predicates: [generationChanged] },
      ),
    builder.on(plans.onChange, (app) => [app]),
  );
}
