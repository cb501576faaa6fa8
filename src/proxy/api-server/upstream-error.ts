// Translates an error of undici or of a socket. Pure. Invariant: the code is `UPSTREAM_UNREACHABLE` only if
// no byte of the request was sent, because clients repeat a write after this error.
import { errorMessage, isMeshError, MeshError } from "../../base/errors.ts";

const TIMEOUT_CODES = new Set(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"]);
const BAD_REQUEST_CODES = new Set(["UND_ERR_INVALID_ARG", "UND_ERR_NOT_SUPPORTED", "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH"]);

/**
 * @param isHandedOver the request had been handed to a connection: the API server may have processed it,
 * whatever the error is
 */
export function upstreamError(cause: unknown, isHandedOver: boolean): MeshError {
  if (isMeshError(cause, "ABORTED") || isMeshError(cause, "REQUEST_BODY_BROKEN")) return cause;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  if (BAD_REQUEST_CODES.has(code)) return new MeshError("BAD_REQUEST", "forwarding the request: it is not valid HTTP", { cause });
  if (TIMEOUT_CODES.has(code)) return new MeshError("UPSTREAM_TIMEOUT", "waiting for the API server: timed out", { cause });
  if (isHandedOver) return new MeshError("UPSTREAM_BROKEN", "waiting for the API server: the connection broke", { cause });
  return new MeshError("UPSTREAM_UNREACHABLE", `connecting to the API server: ${errorMessage(cause)}`, { cause });
}
