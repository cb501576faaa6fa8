// The answer to a watch that is asked for over WebSocket, as the Java client fabric8 does first. Its text frames are not
// filtered here, so the handshake is declined in the way upon which that client watches over plain HTTP: an empty 200 that ends
// at once. It takes a 5xx for a failure to retry, ten times, and an HTTP stream for an answer that never comes. Browsers have no
// such second way. Called by the traffic server.
import { MeshError } from "../../base/errors.ts";
import { discardBody } from "../http/discard-body.ts";
import type { RawCall, Reply } from "../http/handler.ts";

/** The reply, or the one that declines the handshake. What was refused stays refused. */
export function declineWebSocketWatch({ headers, record }: RawCall, reply: Reply): Reply {
  const { info } = record;
  if (headers.upgrade === undefined || info?.kind !== "resource" || info.verb !== "watch" || reply.status !== 200) return reply;
  if (headers.upgrade.toLowerCase() !== "websocket") return reply;
  discardBody(reply.body, new MeshError("ABORTED", "watching over WebSocket: declined"));
  return { status: 200, headers: { "content-length": "0", connection: "close" }, body: null };
}
