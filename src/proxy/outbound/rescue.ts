// Answers each thrown error with a Kubernetes Status in the encoding that the client asked for. Invariants: an
// unexpected error is logged once, and neither log nor answer contains a body or a credential. Errors after the headers
// break the connection.
import type { Logger } from "../../base/log.ts";
import { encodeStatus } from "../../kube/codec/codec.ts";
import { preferredEncoding } from "../../kube/codec/content-negotiation.ts";
import { JSON_TYPE, PROTOBUF_TYPE } from "../../kube/media-types.ts";
import type { RawCall, RawLayer } from "../call/call.ts";
import type { Reply } from "../http/handler.ts";
import { answerTo, type ErrorAnswer } from "./error-status.ts";

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

// What may be logged of a call: never headers, and never the query, which may hold tokens of proxied services.
function subjectOf({ method, record: { info } }: RawCall): object {
  if (info?.kind !== "resource") return { method };
  const { verb, group, resource, namespace, name } = info;
  return { method, verb, group, resource, namespace, name };
}
