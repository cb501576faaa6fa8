// Writes to objects that the subset does not own, where the guard only warns (`guard: Warn`). Invariant: each
// of them is counted by its decision, and its answer says who owns the object; the log has a line at times,
// however many they are.
import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import { plainText } from "../../../base/plain-text.ts";
import type { ResourceCall } from "../../call/call.ts";
import type { Reply } from "../../http/handler.ts";

/**
 * Lets a write pass that the subset's guard would otherwise refuse with `message`. Of two messages the first
 * stays.
 */
export function passForeign({ record }: ResourceCall, message: string): void {
  record.decision = "warned";
  record.reason = "other-subset";
  record.warning ??= message;
}

export interface ForeignWrites {
  /**
   * The answer to the call: with a warning and a line in the log if the call passed as above, otherwise
   * unchanged.
   */
  withWarning(call: ResourceCall, reply: Reply): Reply;
}

/** At most one line in the log for this time. */
const LOG_EVERY_MS = 60_000;

export function createForeignWrites(clock: Clock, log: Logger): ForeignWrites {
  let nextLineMs = Number.NEGATIVE_INFINITY;
  let writes = 0;
  return {
    withWarning({ record: { warning } }, reply) {
      if (warning === undefined) return reply;
      writes++;
      const nowMs = clock.monotonicMs();
      if (nowMs >= nextLineMs) {
        log.warn({ writes, last: warning }, "writes to objects of other subsets have passed, since the guard only warns");
        nextLineMs = nowMs + LOG_EVERY_MS;
        writes = 0;
      }
      const before = reply.headers.warning ?? [];
      return { ...reply, headers: { ...reply.headers, warning: [before, warningHeader(warning)].flat() } };
    },
  };
}

/** The API server too cuts its warnings. */
const MAX_CHARS = 512;

// As Kubernetes writes a warning: code 299, no agent, a quoted text (RFC 9111, section 5.5). A header is
// ASCII.
function warningHeader(message: string): string {
  const text = plainText(`${message}; it passes, since the guard is Warn`, MAX_CHARS).replaceAll(/[^ -~]/g, "?");
  return `299 - "${text.replaceAll(/[\\"]/g, "\\$&")}"`;
}
