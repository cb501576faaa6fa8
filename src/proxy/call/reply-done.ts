// Tells when a write is over, however it ends. Invariant: `done` is called exactly once for every reply whose body is read
// or cancelled, as the contract of ByteSource demands. Used for counting writes in flight.
//
// The API server answers after its commit, so a write is over with the head of its answer: how long the client takes to read
// the rest delays nobody. Only what is handed on to another server (the subresource `proxy`) may go on behind the head.
import { isProxied } from "../../kube/request-kind.ts";
import { countedSource } from "../http/counted-source.ts";
import type { Reply } from "../http/handler.ts";
import type { Call } from "./call.ts";

/** The reply; `done` is called once the write that it answers has been done, or can be done no more. */
export function whenReplyDone({ info }: Call, reply: Reply, done: () => void): Reply {
  if (!isProxied(info) || reply.body === null || reply.body instanceof Uint8Array) {
    done();
    return reply;
  }
  return { ...reply, body: countedSource(reply.body, done) };
}
