// Time and chance as parameters, so that tests drive them. Everything that waits or jitters takes a Clock or a Random;
// lint forbids Date.now, bare timers and Math.random elsewhere.
import { performance } from "node:perf_hooks";
import { MeshError } from "./errors.ts";

/** A pending timer. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall time in milliseconds since the epoch. */
  now(): number;
  /** Milliseconds that never go back, for measuring. */
  monotonicMs(): number;
  /** Calls `run` once after `delayMs`. The timer alone does not keep the process alive. */
  after(delayMs: number, run: () => void): Timer;
}

/** A number in [0, 1). */
export type Random = () => number;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

export const systemRandom: Random = () => Math.random();

/** Resolves after `delayMs`; rejects with `ABORTED` at once when the signal fires. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const aborted = () => {
      timer.cancel();
      reject(new MeshError("ABORTED", "waiting: aborted", { cause: signal?.reason }));
    };
    const timer = clock.after(delayMs, () => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    });
    if (signal?.aborted) aborted();
    else signal?.addEventListener("abort", aborted, { once: true });
  });
}
