// What the proxies of an app do by caller: VirtualApp -> the snapshot's CallerPolicy. Pure; the same for every subset, since
// each proxy reads it with its own subset. Called by plan-app.
import { stripsManagedFields } from "../../../api/annotations.ts";
import type { VirtualAppSpec } from "../../../api/virtual-app.ts";
import type { CallerPolicy } from "../../../route/snapshot.ts";

/** Only valid specs and annotations come here. */
export function callersOf({ configuration, route }: VirtualAppSpec, annotations: Readonly<Record<string, string>>): CallerPolicy {
  return {
    userAgent: configuration?.restConfigOverrides?.userAgentOrPrefix ?? "",
    // Sorted and once each, so that an edit of the order alone sends nothing to anybody.
    defaultOnlyUserAgents: [...new Set(route?.subsetDefaultOnlyUserAgents)].sort(),
    stripManagedFields: stripsManagedFields({ annotations }),
  };
}
