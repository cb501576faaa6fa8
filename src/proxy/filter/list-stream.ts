// A list's body through a filter. Invariant: a list that cannot be filtered to its end breaks the connection and never ends as a shorter
// list. Called by the isolate, excluded-callers, election and strip layers.
import type { ByteFilter } from "../../kube/codec/types.ts";
import type { ByteSource } from "../http/byte-stream.ts";
import { tap } from "../http/tap.ts";

/**
 * The source seen through the filter.
 * @param onDone called once when the body is over, however it ends, with the bytes taken out and the bytes read so far
 */
export function listStream(
  source: ByteSource,
  filter: ByteFilter,
  onDone: (filteredBytes: number, readBytes: number) => void,
): ByteSource {
  let readBytes = 0;
  let writtenBytes = 0;
  return tap(
    source,
    (write) => {
      const emit = (slice: Uint8Array) => {
        writtenBytes += slice.length;
        write(slice);
      };
      return {
        chunk(chunk) {
          readBytes += chunk.length;
          filter.push(chunk, emit);
        },
        end: () => filter.end(emit),
      };
    },
    { onDone: () => onDone(Math.max(0, readBytes - writtenBytes), readBytes) },
  );
}
