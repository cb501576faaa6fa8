// What a caller gets for a request that passes: it reports the outcome and the end to the limiters that have charged it.
import type { Outcome, Ticket } from "../limiters/limiter.ts";

/** The caller must report the end of a request that passes. */
export interface Permit {
  /** The answer has begun, or will not come. Later calls do nothing. */
  settle(outcome: Outcome): void;
  /** The request is over. If it is not settled, its outcome says nothing. Later calls do nothing. */
  release(): void;
}

export const NOTHING_TO_SETTLE: Permit = { settle: () => {}, release: () => {} };

/** @param settled called after the limiters have got the outcome */
export function permitOf(tickets: readonly Ticket[], now: () => number, settled: () => void): Permit {
  let isSettled = false;
  let isReleased = false;
  const settle = (outcome: Outcome) => {
    if (isSettled) return;
    isSettled = true;
    const nowMs = now();
    for (const ticket of tickets) ticket.settle?.(outcome, nowMs);
    settled();
  };
  return {
    settle,
    release() {
      if (isReleased) return;
      isReleased = true;
      settle({ kind: "abandoned", afterMs: 0 });
      for (const ticket of tickets) ticket.release?.();
    },
  };
}
