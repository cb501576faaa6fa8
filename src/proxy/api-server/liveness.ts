// How soon a vanished API server is noticed, by three means (docs/decisions/0009): TCP keepalive for
// connections that only receive, unacknowledged.ts for data that the peer does not acknowledge, and HTTP/2
// PING for the whole path. Invariant: each acts within 45 seconds by default.

/** Times in milliseconds. */
export interface Liveness {
  /** TCP keepalive probes a connection after this time without traffic, */
  readonly keepAliveIdleMs: number;
  /** again after this time, */
  readonly keepAliveIntervalMs: number;
  /** and closes the connection after so many probes without an answer. */
  readonly keepAliveProbes: number;
  /** The time between two HTTP/2 PINGs. A connection without any bytes in that time is lost. */
  readonly pingEveryMs: number;
  /** A connection is lost if data stays unacknowledged for so long. It is checked every `unackedCheckMs`. */
  readonly unackedMs: number;
  readonly unackedCheckMs: number;
}

export const DEFAULT_LIVENESS: Liveness = {
  keepAliveIdleMs: 10_000,
  keepAliveIntervalMs: 10_000,
  keepAliveProbes: 3,
  pingEveryMs: 15_000,
  unackedMs: 30_000,
  unackedCheckMs: 5_000,
};

/** What `Socket.setKeepAlive` takes. */
export function keepAliveOf({ keepAliveIdleMs, keepAliveIntervalMs, keepAliveProbes }: Liveness) {
  return { enable: true, initialDelay: keepAliveIdleMs, interval: keepAliveIntervalMs, count: keepAliveProbes } as const;
}

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
