// A clock that only moves when the model says so, without waiting for promises: there are thousands of moves a second.
import type { Clock, Timer } from "../../src/base/clock.ts";

export interface ModelClock extends Clock {
  /** Moves time forward, running what falls due. */
  pass(ms: number): void;
}

export function createModelClock(): ModelClock {
  const timers = new Set<{ readonly dueMs: number; readonly run: () => void }>();
  const startMs = Date.UTC(2026, 0, 1);
  let elapsedMs = 0;
  return {
    now: () => startMs + elapsedMs,
    monotonicMs: () => elapsedMs,
    after(delayMs, run): Timer {
      const timer = { dueMs: elapsedMs + delayMs, run };
      timers.add(timer);
      return { cancel: () => timers.delete(timer) };
    },
    pass(ms) {
      elapsedMs += ms;
      for (const timer of [...timers]) if (timer.dueMs <= elapsedMs && timers.delete(timer)) timer.run();
    },
  };
}

/** Everything that promises set off has run: Node empties the whole microtask queue before it runs an immediate. */
export function flush(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
