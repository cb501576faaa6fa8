// Declines a watch over WebSocket, whose frames the proxy cannot filter, by an empty 200 that ends
// immediately. The Java client fabric8 then watches over plain HTTP at once, which it does after no other answer. It
// retries a 5xx ten times (20 s), lists again after a 4xx, and waits for ever for the frames of a plain watch.
import { MeshError } from "../../base/errors.ts";
import { isWatch } from "../../kube/request-kind.ts";
import type { Layer } from "../call/call.ts";
import { discardBody } from "../http/byte-stream.ts";
import type { Reply } from "../http/handler.ts";

export const declineWebSocketWatch: Layer = (next) => (call) =>
  call.headers.upgrade?.toLowerCase() === "websocket" && isWatch(call.info) ? next(call).then(decline) : next(call);

function decline(reply: Reply): Reply {
  if (reply.status !== 200) return reply;
  discardBody(reply.body, new MeshError("ABORTED", "watching over WebSocket: declined"));
  return { status: 200, headers: { "content-length": "0", connection: "close" }, body: null };
}
