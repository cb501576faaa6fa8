// Ends a reply that has no end of its own, a tunnel too. Called by the layers that decide by what may change meanwhile.
import { abortWhen, type End, endWhen } from "../filter/end-when.ts";
import { asSource } from "../http/byte-source.ts";
import type { Reply } from "../http/handler.ts";

/** The reply, which breaks off once it is over: a clean end would look complete. */
export function endReply(reply: Reply, end: End): Reply {
  if (reply.tunnel !== undefined) return { ...reply, tunnel: { ...reply.tunnel, signal: abortWhen(reply.tunnel.signal, end) } };
  return reply.body === null ? reply : { ...reply, body: endWhen(asSource(reply.body), end, "break") };
}
