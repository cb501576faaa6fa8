// A request's ByteSource as the Readable that undici sends. Invariant: at most one stream buffer (16 KB and a chunk) is held, and a slow
// API server slows the client down. The client to the API server uses it.
import { Readable } from "node:stream";
import type { ByteSource, SourceControl } from "../http/byte-stream.ts";

/** Opens the source. Destroying the stream cancels it. */
export function readableOf(source: ByteSource): Readable {
  let control: SourceControl | undefined;
  let complete = false;
  const stream = new Readable({
    read() {
      if (control === undefined) control = open();
      else control.resume();
    },
    destroy(error, done) {
      const gone = error ?? new Error("sending a request body: given up");
      if (control === undefined) source.cancel(gone);
      else if (!complete) control.cancel(gone);
      done(error);
    },
  });
  const open = () =>
    source.open({
      write: (chunk) => stream.push(chunk),
      end() {
        complete = true;
        stream.push(null);
      },
      abort(error) {
        complete = true;
        stream.destroy(error);
      },
    });
  return stream;
}
