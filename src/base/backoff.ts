// Exponential backoff with full-range jitter, the one pattern for every retry in the project.
import type { Random } from "./clock.ts";

export interface BackoffOptions {
  /** First delay in milliseconds. */
  readonly baseMs: number;
  /** Upper bound of a delay in milliseconds. */
  readonly maxMs: number;
}

/** The delay before attempt `attempt` (0 is the first retry): between half and the whole of base * 2^attempt, bounded. */
export function backoffMs(attempt: number, options: BackoffOptions, random: Random): number {
  const ceiling = Math.min(options.maxMs, options.baseMs * 2 ** Math.min(attempt, 30));
  return ceiling / 2 + random() * (ceiling / 2);
}
