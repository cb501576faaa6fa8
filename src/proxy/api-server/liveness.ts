// How soon a vanished API server is noticed. Three means, since none sees everything: TCP keepalive sees idle connections and
// those that only receive, but is silent while something sent is not acknowledged; for that there is `unacknowledged.ts`;
// HTTP/2 PING sees the whole path, also a peer whose kernel still answers. Invariant: each acts within 45 seconds by default.

/** Times in milliseconds. */
export interface Liveness {
  /** A connection without traffic for so long is asked by TCP keepalive ... */
  readonly keepAliveIdleMs: number;
  /** ... again and again after this time ... */
  readonly keepAliveIntervalMs: number;
  /** ... and lost after so many questions without an answer. */
  readonly keepAliveProbes: number;
  /** An HTTP/2 connection is asked so often, and lost if nothing at all came until the next question. */
  readonly pingEveryMs: number;
  /** A connection is lost when what was sent stays unacknowledged for so long; looked at every `unackedCheckMs`. */
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

/** The longest that a vanished peer stays unnoticed, whatever its connections were doing. */
export function noticedWithinMs(liveness: Liveness): number {
  const { keepAliveIdleMs, keepAliveIntervalMs, keepAliveProbes, pingEveryMs, unackedMs, unackedCheckMs } = liveness;
  return Math.max(
    keepAliveIdleMs + keepAliveProbes * keepAliveIntervalMs,
    // It vanishes right after an answer: the next question goes unanswered until the one after it.
    2 * pingEveryMs,
    // Seen as unacknowledged by the second look after it was sent: for the first one the answer before it may hide it.
    2 * unackedCheckMs + unackedMs + unackedCheckMs,
  );
}
