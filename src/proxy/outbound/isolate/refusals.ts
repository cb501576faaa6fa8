// The answers to calls for other subsets' objects: refusals, and warnings where the guard only warns
// (`guard: Warn`). Each notes its decision and reason in the record of the call.
import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import { plainText } from "../../../base/plain-text.ts";
import { StatusError } from "../../../kube/status.ts";
import type { Decision } from "../../../mesh/ownership/decide.ts";
import type { Enforced } from "../../../mesh/ownership/enforced.ts";
import { editText, thawText } from "../../../mesh/ownership/words.ts";
import { noteDecision, type ResourceCall } from "../../call/call.ts";
import type { Reply } from "../../http/handler.ts";
import { handoverRunning, RETRY_SECONDS } from "../lists/proxy-list.ts";

export function refusal(
  { why, message }: Extract<Decision, { kind: "refuse" }>,
  { snapshot }: Enforced,
  { record }: ResourceCall,
): StatusError {
  record.reason = why;
  record.decision = why === "moving" ? "fenced" : "refused";
  if (why === "moving") return handoverRunning(message);
  if (why === "not-narrowable") return new StatusError("Forbidden", message);
  return new StatusError("Forbidden", `${message}; to change that, ${editText(snapshot)}`);
}

/** The answer to whatever may change something in a frozen namespace. */
export function frozenRefusal(
  { namespace, message }: Extract<Decision, { kind: "frozen" }>,
  { snapshot }: Enforced,
  { record }: ResourceCall,
): StatusError {
  noteDecision(record, "refused", "frozen");
  return new StatusError("Forbidden", `${message}; to end that: ${thawText(snapshot, namespace)}`);
}

/** The answer to a call whose namespace has no known owner when the wait is over. */
export function ownerUnknown(namespace: string, { info, record }: ResourceCall): StatusError {
  noteDecision(record, "fenced", "unknown");
  const message = `ctrlmesh: ${info.verb} in namespace "${namespace}": the manager has not said yet which subset owns it; try again in ${RETRY_SECONDS} s`;
  return new StatusError("ServiceUnavailable", message, { retryAfterSeconds: RETRY_SECONDS });
}

/** The answer to a list or watch over an upgrade: the frames of a tunnel cannot be filtered. */
export function upgradedCollection({ info, upgrade, record }: ResourceCall): StatusError {
  noteDecision(record, "refused", "upgrade");
  return new StatusError("ServiceUnavailable", `ctrlmesh: ${info.verb} over ${upgrade} is not supported, use plain HTTP`);
}

/** Lets a write pass that the guard would else refuse with `message`. The first message of a call stays. */
export function passForeign({ record }: ResourceCall, message: string): void {
  noteDecision(record, "warned", "other-subset");
  record.warning ??= message;
}

/** At most one line is logged in this time. */
const LOG_EVERY_MS = 60_000;

/** Adds the warning to the answer to a call that `passForeign` has let pass. */
export function createForeignWrites(clock: Clock, log: Logger): (call: ResourceCall, reply: Reply) => Reply {
  let nextLineMs = Number.NEGATIVE_INFINITY;
  let writes = 0;
  return ({ record: { warning } }, reply) => {
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
  };
}

/** The API server too cuts its warnings. */
const MAX_CHARS = 512;

// The form of Kubernetes' warnings: code 299, no agent, a quoted text (RFC 9111, section 5.5), in ASCII.
function warningHeader(message: string): string {
  const text = plainText(`${message}; it passes, since the guard is Warn`, MAX_CHARS).replaceAll(/[^ -~]/g, "?");
  return `299 - "${text.replaceAll(/[\\"]/g, "\\$&")}"`;
}
