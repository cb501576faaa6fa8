// The error of a request to a tenant's server without words of the server. Pure.
import { MeshError } from "../../base/errors.ts";
import { retryAfterMs } from "../../kube/client/response-error.ts";
import { reasonOfCode, StatusError } from "../../kube/status.ts";

/** Of Node and undici: "ECONNREFUSED", "DEPTH_ZERO_SELF_SIGNED_CERT". */
const CAUSE_CODE = /^[A-Z][A-Z0-9_]{1,63}$/;
const MAX_RETRY_AFTER_SECONDS = 60;

const WORDS: Readonly<Record<string, string>> = {
  KUBE_UNREACHABLE: "no connection",
  KUBE_TIMEOUT: "no answer in time",
  KUBE_MALFORMED: "the answer is not a list of namespaces",
  WATCH_TRUNCATED: "the watch ended inside an event",
  WATCH_MALFORMED: "the watch has an event that is not valid",
  TOO_MANY_NAMESPACES: "too many namespaces",
};

export function plainError(error: unknown): MeshError {
  if (error instanceof StatusError) return plainStatus(error);
  const code = error instanceof MeshError && error.code in WORDS ? error.code : "KUBE_UNREACHABLE";
  const cause = causeCode(error);
  return new MeshError(code, `${WORDS[code]}${cause === undefined ? "" : ` (${cause})`}`);
}

function plainStatus(error: StatusError): StatusError {
  const sent: unknown = error.status.code;
  const code = typeof sent === "number" && Number.isInteger(sent) && sent >= 300 && sent < 600 ? sent : 500;
  const reason = reasonOfCode(code) ?? (code < 500 ? "BadRequest" : "InternalError");
  const askedMs = retryAfterMs(error);
  const retryAfterSeconds = askedMs === undefined ? undefined : Math.min(Math.ceil(askedMs / 1_000), MAX_RETRY_AFTER_SECONDS);
  return new StatusError(reason, `HTTP ${code}`, retryAfterSeconds === undefined ? undefined : { retryAfterSeconds });
}

/** The code of the innermost cause. */
function causeCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const own = "code" in error && !(error instanceof MeshError) ? String(error.code) : "";
  return causeCode(error.cause) ?? (CAUSE_CODE.test(own) ? own : undefined);
}
