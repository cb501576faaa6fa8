// The delay before a watch ends because of one event, for an object that may have left the subset by its labels. If the API
// server does not filter by labels, every such event would cost a list. The client always lists again, but less often each time.
// Called by resync.ts, for the watch streams.
import type { Clock } from "../../base/clock.ts";

export interface RelistPace {
  /** Milliseconds until the next watch of this shape may end. A call counts as one end. */
  next(shape: string): number;
}

const FIRST_MS = 1_000;
/** The longest time that a client keeps an object that has left the subset. */
const LONGEST_MS = 60_000;
/** Clients can invent any number of shapes. */
const MAX_SHAPES = 1_000;

export function createRelistPace(clock: Clock): RelistPace {
  // Oldest first, the order of a Map.
  const known = new Map<string, { readonly dueMs: number; readonly intervalMs: number }>();
  return {
    next(shape) {
      const now = clock.monotonicMs();
      const last = known.get(shape);
      // After an equally long rest the delay starts again.
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
