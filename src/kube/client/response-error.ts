// Turns refusals of the API server into StatusErrors. Reason, code, message, details and Retry-After stay as
// sent. An answer that is not a Status, such as a load balancer's error page, becomes one by its HTTP code.
import { createStatus, reasonOfCode, type Status, type StatusDetails, StatusError, type StatusReason } from "../status.ts";

const MAX_MESSAGE_LENGTH = 500;

/**
 * @param code HTTP status code
 * @param retryAfter the Retry-After header, in seconds
 * @param doing the operation of the caller, for the message: "listing pods"
 */
export function responseError(code: number, body: string, retryAfter: string | undefined, doing: string): StatusError {
  const message = body.trim().slice(0, MAX_MESSAGE_LENGTH) || `HTTP ${code}`;
  const status = parseStatus(body) ?? { ...createStatus(reasonOf(code), message), code };
  return statusError({ ...status, code: status.code || code, reason: status.reason || reasonOf(code) }, retryAfter, doing);
}

export function watchError(object: unknown, doing: string): StatusError {
  const sent = isStatusObject(object) ? object : createStatus("InternalError", "the ERROR event has no Status");
  return statusError({ ...sent, reason: sent.reason || reasonOf(sent.code) }, undefined, doing);
}

/** How long the server asks the client to wait before a retry; undefined if the answer does not say. */
export function retryAfterMs(error: StatusError): number | undefined {
  const seconds = error.status.details?.retryAfterSeconds;
  return seconds === undefined || seconds <= 0 ? undefined : seconds * 1000;
}

function reasonOf(code: number): StatusReason {
  return reasonOfCode(code) ?? (code < 500 ? "BadRequest" : "InternalError");
}

function statusError(status: Status, retryAfter: string | undefined, doing: string): StatusError {
  const seconds = Number(retryAfter);
  const details: StatusDetails | undefined =
    retryAfter !== undefined && Number.isFinite(seconds) && !status.details?.retryAfterSeconds
      ? { ...status.details, retryAfterSeconds: seconds }
      : status.details;
  const error = new StatusError(status.reason, `${doing}: ${status.message}`, details);
  // The constructor derives the code from the reason, but the code that the server sent counts.
  return Object.assign(error, { status: { ...error.status, message: status.message, code: status.code } });
}

function parseStatus(body: string): Status | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return isStatusObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isStatusObject(value: unknown): value is Status {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "Status" && "status" in value;
}
