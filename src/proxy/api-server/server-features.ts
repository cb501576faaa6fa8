// What the API servers behind the one address have shown not to know, of the ways to push a rule down. Invariant: a hint for
// speed, never for what is shown, since the residual filter checks every object: so nobody is asked beforehand. Each way is
// tried until an answer disproves it, which counts for one resource (aggregated API servers differ) and for some minutes (API
// servers are upgraded and restarted with other gates, and several of different versions may stand behind one address).
// Called by the push-down.
import type { Clock } from "../../base/clock.ts";
import type { GroupResource } from "../session/session.ts";

/** A way to push down. */
export type Feature = "labels" | "fields" | "shards";

/** `refused`: the request failed because of it. `ignored`: the answer held what it excludes. */
export type Lack = "refused" | "ignored";

export interface ServerFeatures {
  /** Why the resource's server is not asked in this way for now; undefined if it is. */
  lackOf(target: GroupResource, feature: Feature): Lack | undefined;
  lacks(target: GroupResource, feature: Feature, why: Lack): void;
}

/** One request more each time, so rarely; but an odd 400 must not turn the push-down off for long. */
const REFUSED_MS = 10 * 60_000;
/** To try in vain costs nothing but the bytes of the URL. */
const IGNORED_MS = 5 * 60_000;
/** Clients may make resources up. */
const MAX_KNOWN = 1_000;

export function createServerFeatures(clock: Clock): ServerFeatures {
  // Oldest first, as Map keeps them.
  const known = new Map<string, { readonly why: Lack; readonly untilMs: number }>();
  return {
    lackOf(target, feature) {
      if (known.size === 0) return undefined;
      const key = keyOf(target, feature);
      const entry = known.get(key);
      if (entry === undefined || clock.monotonicMs() < entry.untilMs) return entry?.why;
      known.delete(key);
      return undefined;
    },
    lacks(target, feature, why) {
      const key = keyOf(target, feature);
      known.delete(key);
      known.set(key, { why, untilMs: clock.monotonicMs() + (why === "refused" ? REFUSED_MS : IGNORED_MS) });
      const [oldest] = known.keys();
      if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest);
    },
  };
}

function keyOf({ group, resource }: GroupResource, feature: Feature): string {
  return `${feature} ${group}/${resource}`;
}
