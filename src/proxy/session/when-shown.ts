// Waits until the watches have shown what happened a moment ago.
import type { Clock, Timer } from "../../base/clock.ts";

export interface Renewals {
  /** Watches that renew themselves now, and get no events meanwhile. */
  readonly running: number;
  readonly ended: number;
}

/** How often the time is waited for once more. */
const MOST_WAITS = 5;

/** Runs after this time without any renewal, and at the latest after six such times. */
export function whenShown(renewals: () => Renewals, ms: number, run: () => void, clock: Pick<Clock, "after">): Timer {
  let timer: Timer;
  const wait = (waitsLeft: number) => {
    const { ended } = renewals();
    timer = clock.after(ms, () => {
      const isQuiet = renewals().running === 0 && renewals().ended === ended;
      if (isQuiet || waitsLeft === 0) run();
      else wait(waitsLeft - 1);
    });
  };
  wait(MOST_WAITS);
  return { cancel: () => timer.cancel() };
}
