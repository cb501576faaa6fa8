// Since when proxies are not connected, as this manager has seen it. Invariant: a proxy counts as lost only
// after a time that is longer than a failover of the manager, so a failover changes no status.
import { BoundedMap } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/clock.ts";
import type { PodKey } from "../../mesh/handover/proxy-facts.ts";
import { LOST_AFTER_MS } from "../status/facts.ts";

/** The time of a pod that is forgotten begins again. */
const MAX_PODS = 65_536;

export type LostProxies = ReturnType<typeof createLostProxies>;

export function createLostProxies({ clock }: { readonly clock: Clock }) {
  const sinceMs = new BoundedMap<PodKey, number>(MAX_PODS);
  return {
    /** Milliseconds until the proxy counts as lost, 0 if it does; undefined if it is connected. */
    lostInMs(pod: PodKey, isConnected: boolean): number | undefined {
      if (isConnected) {
        sinceMs.delete(pod);
        return undefined;
      }
      const now = clock.monotonicMs();
      const since = sinceMs.get(pod) ?? now;
      sinceMs.set(pod, since);
      return Math.max(0, since + LOST_AFTER_MS - now);
    },
  };
}
