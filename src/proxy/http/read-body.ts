// Reads a small body whole, where a layer must look at all of it (a lock object, discovery). Invariant: never holds more
// than `maxBytes`; a larger body is cancelled and an error.
import { MeshError } from "../../base/errors.ts";
import type { ByteSource } from "./byte-stream.ts";

/**
 * The bytes of a body; empty if there is none.
 * @throws MeshError `BODY_TOO_LARGE`, or the error that the body broke off with
 */
export function readBody(body: Uint8Array | ByteSource | null, maxBytes: number): Promise<Uint8Array> {
  if (body === null) return Promise.resolve(new Uint8Array());
  if (body instanceof Uint8Array) return body.length > maxBytes ? Promise.reject(tooLarge(maxBytes)) : Promise.resolve(body);
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    const control = body.open({
      write(chunk) {
        bytes += chunk.length;
        if (bytes <= maxBytes) {
          chunks.push(chunk);
          return true;
        }
        chunks.length = 0;
        control.cancel(tooLarge(maxBytes));
        reject(tooLarge(maxBytes));
        return false;
      },
      end: () => resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)),
      abort: reject,
    });
  });
}

function tooLarge(maxBytes: number): MeshError {
  return new MeshError("BODY_TOO_LARGE", `reading a body: more than ${maxBytes} bytes`);
}
