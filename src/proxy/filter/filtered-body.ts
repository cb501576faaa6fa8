// The body of a list or watch through a filter. Invariants: a list that cannot be filtered to its end breaks
// the connection and never ends as a shorter list. Of a watch only whole frames leave, and an upstream that
// breaks off leaves a clean end at the last frame.
import { type ByteFilter, createFrameSplitter, type Emit, type Encoding, isCodecError } from "../../kube/codec/codec.ts";
import type { ByteSource } from "../http/byte-stream.ts";
import { tap } from "../http/tap.ts";

/** @param onDone called once, however the body ends */
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
        heldBytes: () => filter.heldBytes,
      };
    },
    { onDone: () => onDone(Math.max(0, readBytes - writtenBytes), readBytes) },
  );
}

/** Each frame is replaced by what `map` gives; undefined drops it, a throw breaks the connection. */
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
      return { chunk: (chunk) => splitter.push(chunk, onFrame), heldBytes: () => splitter.heldBytes };
    },
    { brokenOff: "end" },
  );
}

/**
 * Wraps a filter that hides nothing, so that a list that the filter cannot read passes unchanged. Once bytes
 * have left, an unreadable rest breaks the body: it must not end as a shorter list.
 */
export function lenientFilter(filter: ByteFilter): ByteFilter {
  /** The beginning of the list; undefined once bytes have left. */
  let held: Uint8Array[] | undefined = [];
  let hasFailed = false;

  function attempt(run: (emit: Emit) => void, emit: Emit): void {
    try {
      run((slice) => {
        if (slice.length > 0) held = undefined;
        emit(slice);
      });
    } catch (error) {
      if (held === undefined || !isCodecError(error)) throw error;
      hasFailed = true;
      for (const slice of held) emit(slice);
      held = undefined;
    }
  }

  return {
    get heldBytes() {
      return filter.heldBytes + (held ?? []).reduce((sum, { length }) => sum + length, 0);
    },
    push(chunk, emit) {
      if (hasFailed) {
        emit(chunk);
        return;
      }
      held?.push(chunk);
      attempt((write) => filter.push(chunk, write), emit);
    },
    end(emit) {
      if (!hasFailed) attempt((write) => filter.end(write), emit);
    },
  };
}
