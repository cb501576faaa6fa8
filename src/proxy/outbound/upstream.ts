// Sends the call to the API server. To an upgrade (exec, attach, port-forward) it answers with the intent to
// connect the two sockets, so that an upgrade meets the same decisions as any call. The tunnel learns its outcome.
import type { ApiServer } from "../api-server/api-server.ts";
import type { Layer } from "../call/call.ts";

export function upstream({ send }: Pick<ApiServer, "send">): Layer {
  return () => (call) => {
    call.record.asked = true;
    if (call.upgrade === undefined) return send(call);
    return Promise.resolve({ status: 101, headers: {}, body: null, tunnel: call });
  };
}
