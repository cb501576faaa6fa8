// How long a watch waits that must end because of one event (an object that may have left the subset by its labels): where the
// API server is not asked for labels, or does not heed them, every such event would cost a list. Invariant: a client lists again
// at last, and the less often the more often it had to. Called by resync.ts, for the watch streams.
import type { Clock } from "../../base/clock.ts";

export interface RelistPace {
  /** Milliseconds until the next watch of this shape may end so; a call counts as one end. */
  next(shape: string): number;
}

const FIRST_MS = 1_000;
/** How long a client may keep an object at most that has left the subset. */
const LONGEST_MS = 60_000;
/** Clients make shapes up. */
const MAX_SHAPES = 1_000;

export function createRelistPace(clock: Clock): RelistPace {
  // Oldest first, as Map keeps them.
  const known = new Map<string, { readonly dueMs: number; readonly intervalMs: number }>();
  return {
    next(shape) {
      const now = clock.monotonicMs();
      const last = known.get(shape);
      // After as long a rest again it begins anew.
      const isRested = last === undefined || now - last.dueMs >= 2 * last.intervalMs;
      const dueMs = isRested ? now : Math.max(now, last.dueMs + last.intervalMs);
      known.delete(shape);
      known.set(shape, { dueMs, intervalMs: isRested ? FIRST_MS : Math.min(LONGEST_MS, 2 * last.intervalMs) });
      const [oldest] = known.keys();
      if (known.size > MAX_SHAPES && oldest !== undefined) known.delete(oldest);
      return dueMs - now;
    },
  };
}
