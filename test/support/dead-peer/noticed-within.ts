import type { Liveness } from "../../../src/proxy/api-server/connections.ts";

/** The longest time for which a vanished peer stays unnoticed. */
export function noticedWithinMs(liveness: Liveness): number {
  const { keepAliveIdleMs, keepAliveIntervalMs, keepAliveProbes, pingEveryMs, unackedMs, unackedCheckMs } = liveness;
  return Math.max(
    keepAliveIdleMs + keepAliveProbes * keepAliveIntervalMs,
    // The peer vanishes right after an answer: the next PING has no answer until the one after it.
    2 * pingEveryMs,
    // Unacknowledged data is seen by the second check: an earlier answer may hide it from the first one.
    2 * unackedCheckMs + unackedMs + unackedCheckMs,
  );
}
