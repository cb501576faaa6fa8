// Time and random numbers as parameters, so that tests control them. Invariant: code that waits or adds
// jitter takes a Clock or a Random; the linter forbids Date.now, bare timers and Math.random elsewhere. Used
// everywhere.
import { performance } from "node:perf_hooks";
import { type AbortSource, onAbort } from "./abort.ts";
import { MeshError } from "./errors.ts";

/** A pending timer. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall time in milliseconds since the epoch. */
  now(): number;
  /** Milliseconds on a monotonic clock, for measuring. */
  monotonicMs(): number;
  /**
   * Calls `run` once after `delayMs`, at the latest after 24 days. The timer does not keep the process alive.
   */
  after(delayMs: number, run: () => void): Timer;
}

/** A number in [0, 1). */
export type Random = () => number;

/** The longest delay of a Node timer, 24.8 days. Node fires a timer with a longer delay immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, Math.min(delayMs, MAX_TIMER_MS));
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

export const systemRandom: Random = () => Math.random();

/** Resolves after `delayMs`; rejects with `ABORTED` immediately when the signal fires. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSource): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(delayMs, () => {
      unlink?.();
      resolve();
    });
    const unlink =
      signal &&
      onAbort(signal, () => {
        timer.cancel();
        reject(new MeshError("ABORTED", "waiting: aborted", { cause: signal.reason }));
      });
  });
}
