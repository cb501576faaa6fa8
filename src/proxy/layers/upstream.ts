// The end of the pipeline: sends the call to the API server as the layers before have left it. An upgrade (exec, attach,
// port-forward) is answered by the intent to connect the two sockets, which the server then does: so an upgrade passes
// exactly the same decisions as every other request.
import type { Upstream } from "../api-server/upstream.ts";
import type { Handler } from "../http/handler.ts";

/** The terminal handler. */
export function upstreamHandler(upstream: Pick<Upstream, "send">): Handler {
  return (call) => {
    call.record.asked = true;
    if (call.upgrade === undefined) return upstream.send(call);
    return Promise.resolve({ status: 101, headers: {}, body: null, tunnel: call });
  };
}
