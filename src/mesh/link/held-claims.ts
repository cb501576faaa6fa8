// What a proxy claims when it registers. Pure.
import type { Snapshot } from "../ownership/snapshot.ts";
import { inheritedUntilMs, type ProxyRoutes } from "./proxy-routes.ts";

/**
 * What this proxy may still write to, for its registration. A new manager knows nothing else, so the claims
 * cover every write in flight:
 *
 * - The routes in force refuse new writes to what the pod has lost, but older writes may still run there. So
 *   routes become `acknowledged` only when they are held. Until then, the routes before them stay
 *   `acknowledged`.
 * - The routes that came into force since then already allow writes to what the pod has gained. So they are
 *   listed too (`inDoubt`). Each write in flight was allowed by one of the listed routes.
 * - The manager ends the doubt only after an acknowledgement. It always sends routes to such a proxy, and
 *   their acknowledgement waits for the writes. So a proxy can register at any time, and a write that never
 *   ends delays only its own acknowledgement.
 * - A new process starts with the routes on disk, which were stored after the writes that they refuse had ended. Writes of a
 *   killed process may outlive it, also in namespaces of routes that were not stored yet. Until they are over,
 *   the proxy acknowledges nothing and may hold more than it lists (`mayHoldMore`).
 */
export interface Claims {
  readonly acknowledged: Snapshot | undefined;
  /** Oldest first; empty if `acknowledged` is in force. If there are more than MAX_IN_DOUBT, older ones may be missing. */
  readonly inDoubt: readonly Snapshot[];
  readonly mayHoldMore: boolean;
}

export function heldClaims(routes: ProxyRoutes, nowMs: number): Claims {
  const { acknowledged, inDoubt } = routes;
  return { acknowledged, inDoubt, mayHoldMore: !isSettled(routes, nowMs) };
}

/** No write of the process before can still reach the API server. */
export function isSettled(routes: ProxyRoutes, nowMs: number): boolean {
  return nowMs >= inheritedUntilMs(routes);
}
