// Sends the call to the API server. To an upgrade (exec, attach, port-forward) it answers with the intent to
// connect the two sockets, so that an upgrade meets the same decisions as any call. The tunnel learns its outcome.
// A successful answer proves that the API server accepts the pod, for whoever needs that (home).
import type { ApiServer } from "../api-server/api-server.ts";
import type { Handler, Layer } from "../call/call.ts";
import type { HomeProof } from "../home/home-proof.ts";

export function upstream(
  { send, upgrade }: Pick<ApiServer, "send" | "upgrade">,
  home?: Pick<HomeProof, "mark" | "answered">,
): Layer {
  const sendNoting = home === undefined ? send : noting(send, home);
  return () => async (call) => {
    call.record.asked = true;
    return call.upgrade === undefined ? sendNoting(call) : upgrade(call);
  };
}

function noting(send: Handler, home: Pick<HomeProof, "mark" | "answered">): Handler {
  return async (call) => {
    const sent = home.mark();
    const reply = await send(call);
    if (reply.status < 300) home.answered(call.headers.authorization, sent);
    return reply;
  };
}
