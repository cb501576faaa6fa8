// Exponential backoff with jitter, for every retry in the project. Pure.
import type { Random } from "./clock.ts";

export interface BackoffOptions {
  /** First delay in milliseconds. */
  readonly baseMs: number;
  /** Upper bound of a delay in milliseconds. */
  readonly maxMs: number;
}

/**
 * The delay before a retry (attempt 0 is the first one): a random value between half and all of min(maxMs,
 * baseMs * 2^attempt).
 */
export function backoffMs(attempt: number, options: BackoffOptions, random: Random): number {
  const ceiling = Math.min(options.maxMs, options.baseMs * 2 ** Math.min(attempt, 30));
  return ceiling / 2 + random() * (ceiling / 2);
}
