// Tells when a reply is over, however it ends. Invariant: `done` is called exactly once for every reply whose body is read
// or cancelled, as the contract of ByteSource demands. Used for counting writes in flight.
import type { Reply } from "./handler.ts";
import { countedSource } from "./observe.ts";

/** The reply; `done` is called once its last byte has come, it has broken off, or nobody wants it any more. */
export function whenReplyDone(reply: Reply, done: () => void): Reply {
  if (reply.body === null || reply.body instanceof Uint8Array) {
    done();
    return reply;
  }
  return { ...reply, body: countedSource(reply.body, done) };
}
