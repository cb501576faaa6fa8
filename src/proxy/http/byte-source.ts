// Bodies that are already there, as the sources that filters read.
import type { ByteSource } from "./byte-stream.ts";

/** The body as a source; bytes are written in one piece, in a later microtask, as the contract of `open` says. */
export function asSource(body: Uint8Array | ByteSource): ByteSource {
  if (!(body instanceof Uint8Array)) return body;
  return {
    cancel: () => undefined,
    open(sink) {
      let over = false;
      queueMicrotask(() => {
        if (over) return;
        if (body.length > 0) sink.write(body);
        if (!over) sink.end();
        over = true;
      });
      return {
        resume: () => undefined,
        cancel() {
          over = true;
        },
      };
    },
  };
}
