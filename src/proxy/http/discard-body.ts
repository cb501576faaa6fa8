// Gives up a body that nobody will read, so that its connection is freed.
import type { ByteSource } from "./byte-stream.ts";

/** Cancels the body unread, if there is one and it is not here already. */
export function discardBody(body: Uint8Array | ByteSource | null, why = new Error("the body is not needed")): void {
  if (body !== null && !(body instanceof Uint8Array)) body.cancel(why);
}
