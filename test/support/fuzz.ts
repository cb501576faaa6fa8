// The budgets of the fuzz tests. `npm test` uses a quarter of each budget and a fixed seed; `npm run nightly` uses the full
// budget and a new seed. SEED=N repeats a run. Every failure names its seed.
import type fc from "fast-check";

const isNightly = process.env.NIGHTLY === "true";
const SHARE = isNightly ? 1 : 0.25;

export const FUZZ_SEED = Number(process.env.SEED ?? (isNightly ? Date.now() % 2 ** 31 : 1));

/** The part of a full budget (of time, runs or steps) that this run uses. */
export function shareOf(full: number): number {
  return Math.ceil(full * SHARE);
}

/** Runs for this part of the budget. @param fullMs the full budget of one property, in milliseconds */
export function budget<T>(fullMs = 2_000): fc.Parameters<T> {
  return { seed: FUZZ_SEED, numRuns: 1_000_000, interruptAfterTimeLimit: shareOf(fullMs), markInterruptAsFailure: false };
}
