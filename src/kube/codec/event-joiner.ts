// Joins several lists of one version into the beginning of a watch: an ADDED event for each object, and the
// bookmark that says that these were all. Invariant: holds no more than one chunk and one object. Called by
// the proxy, which asks for the namespaces of a subset one by one.
import type { Version } from "../resource-version.ts";
import type { ObjectType } from "./base/object-type.ts";
import { type ByteFilter, codecError, type Emit, type Encoding, type Keep, type ListJoiner } from "./base/types.ts";
import { bookmarkFrame, createEventReader } from "./list-events.ts";

export interface EventJoinerOptions {
  /** The events end with a bookmark. */
  readonly hasBookmark: boolean;
}

/** @param version of each list; another one is `CODEC_MALFORMED` */
export function createEventJoiner(encoding: Encoding, version: Version, { hasBookmark }: EventJoinerOptions): ListJoiner {
  let type: ObjectType | undefined;
  return {
    next(keep: Keep): ByteFilter {
      let frames: Uint8Array[] = [];
      const reader = createEventReader(encoding, "ADDED", version, keep, ({ frame }) => frames.push(frame));
      return {
        push(chunk, emit) {
          reader.push(chunk);
          if (frames.length > 0) emit(Buffer.concat(frames));
          frames = [];
        },
        end() {
          type = reader.end();
        },
        get dropped() {
          return reader.dropped;
        },
        get kept() {
          return reader.kept;
        },
      };
    },
    end(emit: Emit) {
      if (type === undefined) throw codecError("CODEC_TRUNCATED", "joining lists as events: no list is complete");
      if (hasBookmark) emit(bookmarkFrame(encoding, type, version, { isInitialEnd: true }));
    },
  };
}
