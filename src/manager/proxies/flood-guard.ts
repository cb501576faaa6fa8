// Notices a proxy that floods its stream. Used by proxy-stream.ts, one for each stream.
import type { Clock } from "../../base/clock.ts";

/** In a second. A proxy sends a few messages a minute. */
export const MAX_MESSAGES = 500;
const WINDOW_MS = 1_000;

/** Counts a message with each call. True once there are more than MAX_MESSAGES in a second. */
export function createFloodGuard(clock: Clock): () => boolean {
  let sinceMs = clock.monotonicMs();
  let messages = 0;
  return () => {
    const nowMs = clock.monotonicMs();
    if (nowMs - sinceMs >= WINDOW_MS) [sinceMs, messages] = [nowMs, 0];
    return ++messages > MAX_MESSAGES;
  };
}
