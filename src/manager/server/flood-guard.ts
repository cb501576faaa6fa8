// Counts one proxy's messages, so that it cannot flood the manager.
import type { Clock } from "../../base/clock.ts";

/** The most messages in a second. A proxy sends a few in a minute. */
export const MAX_MESSAGES = 500;

/** Call it for each message. It returns true for one too many. */
export function createFloodGuard(clock: Clock): () => boolean {
  let sinceMs = clock.monotonicMs();
  let messages = 0;
  return () => {
    const nowMs = clock.monotonicMs();
    if (nowMs - sinceMs >= 1_000) [sinceMs, messages] = [nowMs, 0];
    return ++messages > MAX_MESSAGES;
  };
}
