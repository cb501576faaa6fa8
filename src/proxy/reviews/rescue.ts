// Answers each thrown error with a Status, whose message the API server shows to the user. Invariant: no log
// and no answer contains a body.
import { isMeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import { createStatus, reasonOfCode, StatusError } from "../../kube/status.ts";
import { discardBody } from "../http/byte-stream.ts";
import type { Reply } from "../http/handler.ts";
import { jsonReply, ReviewError, type ReviewLayer } from "./review-call.ts";

export function rescue(log: Logger): ReviewLayer {
  return (next) => async (call) => {
    try {
      return await next(call);
    } catch (error) {
      discardBody(call.body);
      const reviewError = asReviewError(error);
      if (reviewError === undefined) log.error({ err: error, method: call.method }, "answering a call of a webhook failed");
      call.record.result = (reviewError ?? INTERNAL).result;
      return statusReply(reviewError ?? INTERNAL);
    }
  };
}

const INTERNAL = new ReviewError(500, "INTERNAL", "ctrlmesh: internal error in the proxy; its log has the details", "failed");

function asReviewError(error: unknown): ReviewError | undefined {
  if (error instanceof ReviewError) return error;
  if (error instanceof StatusError) return new ReviewError(error.status.code, "UNAVAILABLE", error.status.message, "unavailable");
  if (isMeshError(error, "ABORTED")) return new ReviewError(503, "ABORTED", "ctrlmesh: the call was given up", "client-gone");
  if (isMeshError(error, "BODY_TOO_LARGE"))
    return new ReviewError(413, "BODY_TOO_LARGE", `ctrlmesh: ${error.message}`, "refused");
  if (isMeshError(error, "BAD_REQUEST") || isMeshError(error, "REQUEST_BODY_BROKEN"))
    return new ReviewError(400, "BAD_REQUEST", `ctrlmesh: ${error.message}`, "refused");
  return undefined;
}

function statusReply({ status, code, message, retryAfterSeconds }: ReviewError): Reply {
  const answer = { ...createStatus(reasonOfCode(status) ?? "InternalError", message), code: status };
  const again = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
  return jsonReply(status, answer, { "x-ctrlmesh-error": code, ...again });
}
