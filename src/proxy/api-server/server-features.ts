// Remembers which kinds of server-side filtering the API server has refused or ignored, for each resource,
// since aggregated API servers differ, and for minutes, since servers are upgraded. Invariant: it decides
// about speed, never about what is shown, since proxy-side filtering checks every object.
import { BoundedMap } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/clock.ts";
import type { GroupResource } from "../../kube/types.ts";

/** A kind of server-side filtering; "namespaces" are lists by namespace. */
export type Feature = "labels" | "fields" | "shards" | "namespaces";

/** `refused`: the request failed because of it. `ignored`: the answer held what it excludes. */
export type Lack = "refused" | "ignored";

export interface ServerFeatures {
  /** Why this kind is not used for the resource now; undefined if it is used. */
  lackOf(target: GroupResource, feature: Feature): Lack | undefined;
  lacks(target: GroupResource, feature: Feature, why: Lack): void;
}

/** Each trial costs one more request. But one odd 400 must not turn server-side filtering off for long. */
const REFUSED_MS = 10 * 60_000;
/** A trial costs only bytes. */
const IGNORED_MS = 5 * 60_000;
/** Clients may invent resources. */
const MAX_KNOWN = 1_000;

export function createServerFeatures(clock: Clock): ServerFeatures {
  const missingFeatures = new BoundedMap<string, { readonly why: Lack; readonly untilMs: number }>(MAX_KNOWN);
  return {
    lackOf(target, feature) {
      if (missingFeatures.size === 0) return undefined;
      const key = keyOf(target, feature);
      const entry = missingFeatures.get(key);
      if (entry === undefined || clock.monotonicMs() < entry.untilMs) return entry?.why;
      missingFeatures.delete(key);
      return undefined;
    },
    lacks(target, feature, why) {
      const key = keyOf(target, feature);
      missingFeatures.set(key, { why, untilMs: clock.monotonicMs() + (why === "refused" ? REFUSED_MS : IGNORED_MS) });
    },
  };
}

function keyOf({ group, resource }: GroupResource, feature: Feature): string {
  return `${feature} ${group}/${resource}`;
}
