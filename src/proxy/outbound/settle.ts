// Reports to the limits the outcome of what they have let pass: that of the client's call as a whole, also if the proxy
// sends several requests for it. Settled at the head of the answer and released at its end, or at the head if the
// request has no end of its own.
import type { Clock } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import { isLongRunning } from "../../kube/request-kind.ts";
import type { Layer } from "../call/call.ts";
import { countedSource } from "../http/counted-source.ts";
import type { Reply } from "../http/handler.ts";

export function settle({ clock }: { readonly clock: Clock }): Layer {
  return (next) => async (call) => {
    const { record } = call;
    let reply: Reply;
    try {
      reply = await next(call);
    } catch (error) {
      if (isUpstreamFailure(error)) record.charge?.permit.settle({ kind: "failed" });
      record.charge?.permit.release();
      throw error;
    } finally {
      record.isAnswered = true;
    }
    if (record.charge === undefined) return reply;
    const { permit, atMs } = record.charge;
    permit.settle({ kind: "answered", status: reply.status, tookMs: clock.monotonicMs() - atMs });
    const { body } = reply;
    if (body !== null && !(body instanceof Uint8Array) && !isLongRunning(call.info))
      return { ...reply, body: countedSource(body, permit.release) };
    permit.release();
    return reply;
  };
}

/** A client that left, or a body that broke off, says nothing of the API server. */
function isUpstreamFailure(error: unknown): boolean {
  return error instanceof MeshError && error.code.startsWith("UPSTREAM_");
}
