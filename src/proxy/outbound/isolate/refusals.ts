// The answers to calls that the isolate layer refuses. Invariant: each refusal notes its decision and reason in
// the record of the call, and names the remedy.
import { StatusError } from "../../../kube/status.ts";
import type { Decision } from "../../../route/decide.ts";
import { editText } from "../../../route/source-words.ts";
import type { ResourceCall } from "../../call/call.ts";
import type { Enforced } from "../../session/session.ts";
import { handoverRunning, RETRY_SECONDS } from "../lists/read-view.ts";

/** The answer to a call that the routes refuse. */
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

/** The answer to a call whose namespace has no known owner when the wait is over. */
export function ownerUnknown(namespace: string, { info, record }: ResourceCall): StatusError {
  record.decision = "fenced";
  record.reason = "unknown";
  const message = `ctrlmesh: ${info.verb} in namespace "${namespace}": the manager has not said yet which subset owns it; try again in ${RETRY_SECONDS} s`;
  return new StatusError("ServiceUnavailable", message, { retryAfterSeconds: RETRY_SECONDS });
}

/** The answer to a list or watch over an upgrade: the frames of a tunnel cannot be filtered. */
export function upgradedCollection({ info, upgrade, record }: ResourceCall): StatusError {
  record.decision = "refused";
  record.reason = "upgrade";
  return new StatusError("ServiceUnavailable", `ctrlmesh: ${info.verb} over ${upgrade} is not supported, use plain HTTP`);
}
