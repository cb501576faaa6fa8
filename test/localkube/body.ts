// Reads a request's body up to the API server's limit. It never holds more than the limit, and it answers 413 even while the
// client still sends.
import type { IncomingMessage } from "node:http";
import { StatusError } from "../../src/kube/status.ts";

/** kube-apiserver's MaxRequestBodyBytes. */
export const MAX_BODY_BYTES = 3 * 1024 * 1024;

/** @throws StatusError RequestEntityTooLarge */
export async function readBody(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of message) {
    const bytes = chunk as Buffer;
    size += bytes.length;
    if (size > MAX_BODY_BYTES)
      throw new StatusError("RequestEntityTooLarge", `Request entity too large: limit is ${MAX_BODY_BYTES}`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}
