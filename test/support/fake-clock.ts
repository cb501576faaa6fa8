// A clock that only moves when a test moves it. Timers run in the order of their due times, equal ones in the order of their
// creation. All promises that a timer resolves have run before the next timer does.
import type { Clock, Timer } from "../../src/base/clock.ts";

export interface FakeClock extends Clock {
  /** Moves time forward and runs the timers that become due. */
  advance(ms: number): Promise<void>;
  /** Runs pending promises without moving time. */
  flush(): Promise<void>;
  /** Moves only the wall clock, like an NTP step. */
  stepWall(ms: number): void;
  /** The number of waiting timers. */
  readonly pending: number;
}

interface Waiting {
  readonly dueMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** @param startMs wall time at the start, in milliseconds since the epoch */
export function createFakeClock(startMs = Date.UTC(2026, 0, 1)): FakeClock {
  const timers = new Set<Waiting>();
  let elapsedMs = 0;
  let wallMs = startMs;
  let order = 0;

  function nextDue(limitMs: number): Waiting | undefined {
    let next: Waiting | undefined;
    for (const timer of timers) {
      if (timer.dueMs > limitMs) continue;
      if (next === undefined || timer.dueMs < next.dueMs || (timer.dueMs === next.dueMs && timer.order < next.order))
        next = timer;
    }
    return next;
  }

  return {
    now: () => wallMs + elapsedMs,
    monotonicMs: () => elapsedMs,
    after(delayMs, run): Timer {
      const timer: Waiting = { dueMs: elapsedMs + Math.max(0, delayMs), order: order++, run };
      timers.add(timer);
      return { cancel: () => timers.delete(timer) };
    },
    async advance(ms) {
      const endMs = elapsedMs + ms;
      await flushMicrotasks();
      for (let timer = nextDue(endMs); timer !== undefined; timer = nextDue(endMs)) {
        timers.delete(timer);
        elapsedMs = Math.max(elapsedMs, timer.dueMs);
        timer.run();
        await flushMicrotasks();
      }
      elapsedMs = Math.max(elapsedMs, endMs); // a concurrent call may have moved the clock
    },
    flush: flushMicrotasks,
    stepWall(ms) {
      wallMs += ms;
    },
    get pending() {
      return timers.size;
    },
  };
}

// Node empties the whole microtask queue before it runs an immediate.
function flushMicrotasks(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
