// The budgets of the fuzz tests. `npm test` uses a part of each budget and a fixed seed; `npm run nightly` uses the full
// budget and a new seed. SEED=N repeats a run. Every failure names its seed.
import type fc from "fast-check";

export const isNightly = process.env.NIGHTLY === "true";

export const FUZZ_SEED = Number(process.env.SEED ?? (isNightly ? Date.now() % 2 ** 31 : 1));

/** The part of a full budget (of time, runs or steps) that this run uses. @param usual the part in `npm test` */
export function shareOf(full: number, usual = 1 / 4): number {
  return Math.ceil(full * (isNightly ? 1 : usual));
}

/** Of a check that the full budget makes at every n-th chance: at every how many chances this run makes it. */
export function everyOf(full: number): number {
  return isNightly ? full : full * 8;
}

/** Runs for this part of the budget. @param fullMs the full budget of one property, in milliseconds */
export function budget<T>(fullMs = 2_000): fc.Parameters<T> {
  return { seed: FUZZ_SEED, numRuns: 1_000_000, interruptAfterTimeLimit: shareOf(fullMs), markInterruptAsFailure: false };
}
