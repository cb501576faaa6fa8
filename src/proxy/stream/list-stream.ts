// A list's body through a filter. Invariant: what cannot be filtered to its end breaks the connection; it never ends cleanly
// as a shorter list. Called by the isolate layer (ownership) and the election layer (other subsets' locks).
import type { ByteFilter } from "../../kube/codec/types.ts";
import type { ByteSource, SourceControl } from "../pipeline/byte-stream.ts";

/**
 * The source seen through the filter.
 * @param onDone called once when the body is over, however it ends, with the number of bytes taken out so far
 */
export function listStream(source: ByteSource, filter: ByteFilter, onDone: (filteredBytes: number) => void): ByteSource {
  let over = false;
  let filteredBytes = 0;
  const finish = () => {
    if (over) return false;
    over = true;
    onDone(Math.max(0, filteredBytes));
    return true;
  };
  return {
    cancel(error) {
      finish();
      source.cancel(error);
    },
    open(sink) {
      let wanted = true;
      const emit = (slice: Uint8Array) => {
        if (over) return; // the client went while a chunk was being filtered
        filteredBytes -= slice.length;
        if (!sink.write(slice)) wanted = false;
      };
      const guarded = (run: () => void): boolean => {
        try {
          run();
          return !over;
        } catch (error) {
          if (finish()) {
            control.cancel(asError(error));
            sink.abort(asError(error));
          }
          return false;
        }
      };
      const control: SourceControl = source.open({
        write(chunk) {
          if (over) return false;
          wanted = true;
          filteredBytes += chunk.length;
          return guarded(() => filter.push(chunk, emit)) && wanted;
        },
        end() {
          if (!over && guarded(() => filter.end(emit)) && finish()) sink.end();
        },
        abort(error) {
          if (finish()) sink.abort(error);
        },
      });
      return {
        resume: () => control.resume(),
        cancel(error) {
          finish();
          control.cancel(error);
        },
      };
    },
  };
}

/** Whatever was thrown, as an Error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
