// Waits for the expected state, and shows the present one meanwhile. Invariant: if the state is not reached in time, or a process has ended, the
// error names the expected and the present state. Called by the steps of the acts.
import { availableParallelism, loadavg } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { MeshError } from "../../src/base/errors.ts";

export interface Watcher<F> {
  /** Resolves with the facts once `wrong` returns undefined for them. @throws MeshError `UNEXPECTED` with the difference */
  until(wrong: (facts: F) => string | undefined): Promise<F>;
  /** Shows the state for some time. */
  linger(ms: number): Promise<void>;
}

export interface WatcherOptions<F> {
  look(): Promise<F>;
  show(facts: F): void;
  /** Throws if a process has ended. */
  assertAlive(): void;
  readonly signal: AbortSignal;
  /** Default 60,000, which is enough on a busy machine. */
  readonly withinMs?: number;
}

const EVERY_MS = 150;

export function createWatcher<F>({ look, show, assertAlive, signal, withinMs = 60_000 }: WatcherOptions<F>): Watcher<F> {
  const watch = async (): Promise<F> => {
    signal.throwIfAborted();
    assertAlive();
    const seen = await look();
    show(seen);
    return seen;
  };
  return {
    async until(wrong) {
      const deadline = performance.now() + withinMs;
      for (;;) {
        const seen = await watch();
        const problem = wrong(seen);
        if (problem === undefined) return seen;
        if (performance.now() > deadline)
          throw new MeshError(
            "UNEXPECTED",
            `${problem}, after ${withinMs / 1000} s${busyText(loadavg()[0] ?? 0, availableParallelism())}`,
          );
        await delay(EVERY_MS, undefined, { signal });
      }
    },
    async linger(ms) {
      const until = performance.now() + ms;
      while (performance.now() < until) {
        await watch();
        await delay(Math.min(EVERY_MS, ms), undefined, { signal });
      }
    },
  };
}

/** A hint that the machine is busy; empty if it is not. */
export function busyText(load: number, cores: number): string {
  return load > cores ? ` (is this machine busy? load ${load.toFixed(0)} on ${cores} cores)` : "";
}
