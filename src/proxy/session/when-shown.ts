// Waits until the watches have shown what happened a moment ago.
import type { Clock, Timer } from "../../base/clock.ts";

export interface Renewals {
  /** Watches that renew themselves now, and get no events meanwhile. */
  readonly running: number;
  readonly ended: number;
}

/** Runs after `ms` in which no watch has renewed itself, and after `mostMs` at the latest. */
export function whenShown(
  renewals: () => Renewals,
  { ms, mostMs }: { readonly ms: number; readonly mostMs: number },
  run: () => void,
  clock: Pick<Clock, "after" | "monotonicMs">,
): Timer {
  const endMs = clock.monotonicMs() + mostMs;
  let timer: Timer;
  const wait = () => {
    const { ended } = renewals();
    timer = clock.after(Math.min(ms, endMs - clock.monotonicMs()), () => {
      const isQuiet = renewals().running === 0 && renewals().ended === ended;
      if (isQuiet || clock.monotonicMs() >= endMs) run();
      else wait();
    });
  };
  wait();
  return { cancel: () => timer.cancel() };
}
