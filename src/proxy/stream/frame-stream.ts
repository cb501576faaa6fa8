// A watch's body with each frame put through a function. Invariant: only whole frames leave; an upstream that breaks off
// leaves a clean end at the last frame. Called by the election layer through rename-stream.
import type { Encoding } from "../../kube/codec/types.ts";
import { createFrameSplitter } from "../../kube/codec/watch-frames.ts";
import type { ByteSource, SourceControl } from "../pipeline/byte-stream.ts";
import { asError } from "./list-stream.ts";

/** The source with each frame replaced by what `map` gives; undefined drops it, a throw breaks the connection. */
export function frameStream(
  source: ByteSource,
  encoding: Encoding,
  map: (frame: Uint8Array) => Uint8Array | undefined,
): ByteSource {
  return {
    cancel: (error) => source.cancel(error),
    open(sink) {
      const splitter = createFrameSplitter(encoding);
      let over = false;
      let wanted = true;
      const onFrame = (frame: Uint8Array) => {
        const mapped = over ? undefined : map(frame);
        if (mapped !== undefined && !sink.write(mapped)) wanted = false;
      };
      const end = () => {
        if (over) return;
        over = true;
        sink.end();
      };
      const control: SourceControl = source.open({
        write(chunk) {
          if (over) return false;
          wanted = true;
          try {
            splitter.push(chunk, onFrame);
          } catch (error) {
            over = true;
            control.cancel(asError(error));
            sink.abort(asError(error));
          }
          return wanted && !over;
        },
        end,
        abort: end,
      });
      return {
        resume: () => control.resume(),
        cancel(error) {
          over = true;
          control.cancel(error);
        },
      };
    },
  };
}
