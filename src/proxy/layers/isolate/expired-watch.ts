// The answer to a watch that must not go on from its resourceVersion: what the API server itself answers when a version is too
// old, a stream of one ERROR event with a Status 410. Not the HTTP status 410: the API server never gives that to a watch that
// it could read, and kopf ends its whole process upon it. Called by the isolate layer.

import { preferredEncoding } from "../../../kube/codec/content-negotiation.ts";
import { encodeErrorFrame } from "../../../kube/codec/status-bytes.ts";
import { createStatus } from "../../../kube/status.ts";
import type { Call } from "../../call/call.ts";
import type { Reply } from "../../http/handler.ts";

const CONTENT_TYPE = { json: "application/json", protobuf: "application/vnd.kubernetes.protobuf;stream=watch" } as const;
const EXPIRED = createStatus(
  "Expired",
  "ctrlmesh: the namespaces of this subset, or its proxy, have changed since the last list, list again",
);

export function expiredWatch({ headers: { accept } }: Call): Reply {
  const encoding = preferredEncoding(accept);
  return {
    status: 200,
    headers: { "content-type": CONTENT_TYPE[encoding], "cache-control": "no-cache, private", "x-ctrlmesh-error": "EXPIRED" },
    body: encodeErrorFrame(encoding, EXPIRED),
  };
}
