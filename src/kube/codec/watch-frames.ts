// Cuts watch streams into whole events and reads the metadata of an event's object. A frame is a document,
// not a chunk and not a line, and it is passed on as soon as its last byte is there. Called by the proxy's
// filters.

import { DEFAULT_MAX_BYTES, type Encoding, type Keep, type ReadOptions } from "./base/types.ts";
import type { FrameSplitter, WatchFrame } from "./base/watch-event.ts";
import { filterJsonTableFrame, readJsonFrame } from "./json/frame.ts";
import { JsonFrameSplitter } from "./json/frame-splitter.ts";
import { readProtobufFrame } from "./protobuf/frame.ts";
import { ProtobufFrameSplitter } from "./protobuf/frame-splitter.ts";

export type { FrameSplitter, WatchEventType, WatchFrame } from "./base/watch-event.ts";

/**
 * Creates a splitter for one watch response.
 * @param options.maxFrameBytes upper bound of one event; default 16 MiB. More is `CODEC_TOO_LARGE`.
 */
export function createFrameSplitter(encoding: Encoding, options: { readonly maxFrameBytes?: number } = {}): FrameSplitter {
  const maxFrameBytes = options.maxFrameBytes ?? DEFAULT_MAX_BYTES;
  return encoding === "json" ? new JsonFrameSplitter(maxFrameBytes) : new ProtobufFrameSplitter(maxFrameBytes);
}

/** Reads one whole frame. Throws `CODEC_MALFORMED`. */
export function readFrame(encoding: Encoding, frame: Uint8Array, options: ReadOptions = {}): WatchFrame {
  return encoding === "json" ? readJsonFrame(frame, options) : readProtobufFrame(frame, options);
}

/**
 * A JSON Table event without the rows of other subsets and the rows that cannot be read; the other bytes
 * stay. Throws `CODEC_MALFORMED` if the event has no Table.
 */
export function filterTableFrame(frame: Uint8Array, keep: Keep, options: ReadOptions = {}): Uint8Array {
  return filterJsonTableFrame(frame, keep, options);
}
