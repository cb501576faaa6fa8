// fast-check on a time budget: as many runs as fit, and a failure names its seed.
import type fc from "fast-check";

/** How long one property runs. */
export function budget<T>(milliseconds = 2_000): fc.Parameters<T> {
  return { numRuns: 1_000_000, interruptAfterTimeLimit: milliseconds, markInterruptAsFailure: false };
}
