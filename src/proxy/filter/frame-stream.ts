// A watch's body with each frame put through a function. Invariant: only whole frames leave; an upstream that breaks off
// leaves a clean end at the last frame. Called by the election layer through rename-stream and by the strip layer.
import type { Encoding } from "../../kube/codec/types.ts";
import { createFrameSplitter } from "../../kube/codec/watch-frames.ts";
import type { ByteSource } from "../http/byte-stream.ts";
import { tap } from "../http/tap.ts";

/** The source with each frame replaced by what `map` gives; undefined drops it, a throw breaks the connection. */
export function frameStream(
  source: ByteSource,
  encoding: Encoding,
  map: (frame: Uint8Array) => Uint8Array | undefined,
): ByteSource {
  return tap(
    source,
    (write) => {
      const splitter = createFrameSplitter(encoding);
      const onFrame = (frame: Uint8Array) => {
        const mapped = map(frame);
        if (mapped !== undefined) write(mapped);
      };
      return { chunk: (chunk) => splitter.push(chunk, onFrame) };
    },
    { brokenOff: "end" },
  );
}
