// Notices the end of a write. Invariant: `done` is called exactly once for every reply, once its body is read or cancelled. Called by
// isolate.ts, which counts writes in flight.
//
// The API server answers after its commit, so a write is over with the head of its answer, however slowly the client reads the rest. Only a
// write that another server answers (the subresource `proxy`) may go on after the head.
import { isProxied } from "../../kube/request-kind.ts";
import { countedSource } from "../http/counted-source.ts";
import type { Reply } from "../http/handler.ts";
import type { Call } from "./call.ts";

/** The reply. `done` is called once its write has been done, or can be done no more. */
export function whenReplyDone({ info }: Call, reply: Reply, done: () => void): Reply {
  if (!isProxied(info) || reply.body === null || reply.body instanceof Uint8Array) {
    done();
    return reply;
  }
  return { ...reply, body: countedSource(reply.body, done) };
}
