// Puts a body through a function on its way. Invariants: after any end nothing is written, and `onDone` has
// been called once; an error of the function breaks the body at both ends.
import type { MemoryHold } from "../../base/fair-memory.ts";
import { type ByteSource, cutForMemory, type SourceControl } from "./byte-stream.ts";

export interface Passage {
  /** Writes what becomes of a chunk, now or later. */
  chunk(chunk: Uint8Array): void;
  /** The source is complete: writes what is held. */
  end?(): void;
  /** The bytes that wait here for others. Absent: none. */
  heldBytes?(): number;
}

export interface TapOptions {
  /** Called once, however the body ends, even if it is never opened. */
  readonly onDone?: () => void;
  /** "end": each part of the body is complete in itself, so the body may end where its source breaks off. */
  readonly brokenOff?: "break" | "end";
}

/** @param start called when the body is opened, with where to write */
export function tap(
  source: ByteSource,
  start: (write: (slice: Uint8Array) => void) => Passage,
  { onDone, brokenOff = "break" }: TapOptions = {},
): ByteSource {
  let isOver = false;
  let hold: MemoryHold | undefined;
  const finish = () => {
    if (isOver) return false;
    isOver = true;
    hold?.end();
    onDone?.();
    return true;
  };
  return {
    share: source.share,
    cancel(error) {
      finish();
      source.cancel(error);
    },
    open(sink) {
      let wanted = true;
      const passage = start((slice) => {
        if (!isOver && !sink.write(slice)) wanted = false;
      });
      const fail = (error: Error) => {
        if (!finish()) return;
        control.cancel(error);
        sink.abort(error);
      };
      if (passage.heldBytes !== undefined) hold = source.share?.hold(() => fail(cutForMemory()));
      const control: SourceControl = source.open({
        write(chunk) {
          if (isOver) return false;
          wanted = true;
          try {
            passage.chunk(chunk);
            hold?.set(passage.heldBytes?.() ?? 0);
          } catch (error) {
            fail(asError(error));
          }
          return wanted && !isOver;
        },
        end() {
          if (isOver) return;
          try {
            passage.end?.();
          } catch (error) {
            fail(asError(error));
          }
          if (finish()) sink.end();
        },
        abort(error) {
          if (!finish()) return;
          if (brokenOff === "end") sink.end();
          else sink.abort(error);
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

export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
