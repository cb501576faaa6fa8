// Answers each thrown error with a Status in the encoding that the client asked for. Invariants: an
// unexpected error is logged once, and neither log nor answer contains a body or a credential; only a request
// that was certainly not processed, or that only reads, gets a Retry-After.
import { isMeshError, MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import { encodeStatus, isCodecError } from "../../kube/codec/codec.ts";
import { preferredEncoding } from "../../kube/codec/content-negotiation.ts";
import { JSON_TYPE, PROTOBUF_TYPE } from "../../kube/media-types.ts";
import { createStatus, type Status, StatusError } from "../../kube/status.ts";
import type { RawCall, RawLayer } from "../call/call.ts";
import type { Reply } from "../http/handler.ts";
import { PolicyError } from "../policies/policy-refusal.ts";

const CONTENT_TYPE = { json: JSON_TYPE, protobuf: PROTOBUF_TYPE } as const;

export function rescue(log: Logger): RawLayer {
  return (next) => async (call) => {
    try {
      return await next(call);
    } catch (error) {
      const answer = answerTo(error, call.method);
      if (answer.unexpected) log.error({ err: error, ...subjectOf(call) }, "answering a request failed");
      return statusReply(answer, call.headers.accept);
    }
  };
}

function statusReply({ status, code, retryAfterSeconds }: ErrorAnswer, accept: string | undefined): Reply {
  const encoding = preferredEncoding(accept);
  const body = encodeStatus(encoding, status);
  return {
    status: status.code,
    headers: {
      "content-type": CONTENT_TYPE[encoding],
      "content-length": String(body.length),
      "cache-control": "no-cache, private",
      "x-ctrlmesh-error": code,
      ...(retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) }),
    },
    body,
  };
}

// The loggable fields of a call: no headers and no query, which may hold tokens of proxied services.
function subjectOf({ method, record: { info } }: RawCall): object {
  if (info?.kind !== "resource") return { method };
  const { verb, group, resource, namespace, name } = info;
  return { method, verb, group, resource, namespace, name };
}

export interface ErrorAnswer {
  readonly status: Status;
  /** Value of the header `x-ctrlmesh-error`. */
  readonly code: string;
  readonly retryAfterSeconds: number | undefined;
  /** The answer does not name the cause, so the error must be logged. */
  readonly unexpected: boolean;
}

/** @param method decides whether a retry is safe */
export function answerTo(error: unknown, method: string): ErrorAnswer {
  if (error instanceof PolicyError)
    return { ...answerOf(error.status, error.errorCode), retryAfterSeconds: error.retryAfterSeconds };
  if (error instanceof StatusError) return answerOf(error.status, constantCase(error.status.reason));
  let code = "INTERNAL";
  let message = "ctrlmesh: internal error in the proxy; its log has the details";
  if (error instanceof MeshError) {
    const status = statusOf(error, method);
    if (status !== undefined) return answerOf(status, error.code);
    // This is about the API server's body: layers that read a caller's body answer 413 and 400 by themselves.
    if (error.code === "BODY_TOO_LARGE" || isCodecError(error)) {
      code = error.code;
      message = "ctrlmesh: the API server's answer is not what its content type says, or larger than the proxy can translate";
    }
  }
  return { ...answerOf(createStatus("InternalError", message), code), unexpected: true };
}

function answerOf(status: Status, code: string): ErrorAnswer {
  return { status, code, retryAfterSeconds: status.details?.retryAfterSeconds, unexpected: false };
}

function statusOf(error: MeshError, method: string): Status | undefined {
  const isRead = method === "GET" || method === "HEAD";
  switch (error.code) {
    case "BAD_REQUEST_TARGET":
    case "BAD_REQUEST":
    case "REQUEST_BODY_BROKEN":
      return createStatus("BadRequest", `ctrlmesh: ${error.message}`);
    case "UPSTREAM_UNREACHABLE":
      return createStatus("ServiceUnavailable", "ctrlmesh: the API server is not reachable from this pod", {
        retryAfterSeconds: 1,
      });
    case "UPSTREAM_BROKEN":
      // The API server may have processed a write. client-go repeats a write only upon Retry-After.
      return createStatus(
        "ServiceUnavailable",
        "ctrlmesh: the connection to the API server broke while it was answering",
        isRead ? { retryAfterSeconds: 1 } : undefined,
      );
    case "OVER_MEMORY_SHARE":
      return createStatus("ServiceUnavailable", `ctrlmesh: ${error.message}`, { retryAfterSeconds: 5 });
    case "UPSTREAM_TIMEOUT":
      return createStatus("Timeout", "ctrlmesh: the API server did not answer in time");
    case "ABORTED":
      return createStatus("ServiceUnavailable", "ctrlmesh: the request was given up");
    default:
      return undefined;
  }
}

/** True if the client or the drain ended the call: that is no failure. */
export function isAborted(error: unknown): boolean {
  return isMeshError(error, "ABORTED");
}

// ServiceUnavailable -> SERVICE_UNAVAILABLE
function constantCase(reason: string): string {
  return reason.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}
