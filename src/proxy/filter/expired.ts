// Makes a client list again, as the API server does when a resourceVersion is too old: one ERROR event with a
// Status 410. Never the HTTP status 410: the API server does not answer a readable watch so, and kopf ends
// its process upon it.
import { type Encoding, encodeErrorFrame } from "../../kube/codec/codec.ts";
import { preferredEncoding, watchContentType } from "../../kube/codec/content-negotiation.ts";
import { createStatus } from "../../kube/status.ts";
import type { Call } from "../call/call.ts";
import type { Reply } from "../http/handler.ts";

const EXPIRED = createStatus(
  "Expired",
  "ctrlmesh: the namespaces of this subset, or its proxy, have changed since the last list, list again",
);

export function expiredFrame(encoding: Encoding): Uint8Array {
  return encodeErrorFrame(encoding, EXPIRED);
}

export function expiredWatch({ headers: { accept }, record }: Call): Reply {
  record.decision = "fenced";
  record.reason ??= "list-again";
  const encoding = preferredEncoding(accept);
  return {
    status: 200,
    headers: { "content-type": watchContentType(encoding), "cache-control": "no-cache, private", "x-ctrlmesh-error": "EXPIRED" },
    body: expiredFrame(encoding),
  };
}
