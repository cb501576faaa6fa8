// Watch streams: cutting them into whole events and reading whose object an event carries. Invariant: a frame is a document,
// not a chunk and not a line, and it is handed on as soon as its last byte is there. Called by the proxy's stream layer.

import { filterJsonTableFrame, readJsonFrame } from "./json-frame.ts";
import { JsonFrameSplitter } from "./json-frame-splitter.ts";
import { ProtobufFrameSplitter, readProtobufFrame } from "./protobuf-frame.ts";
import { DEFAULT_MAX_BYTES, type Encoding, type Keep, type ReadOptions } from "./types.ts";
import type { WatchFrame } from "./watch-event.ts";

export type { WatchEventType, WatchFrame } from "./watch-event.ts";

/** Cuts a watch stream into frames. Throws `CODEC_MALFORMED` and `CODEC_TOO_LARGE`; it must not be used after that. */
export interface FrameSplitter {
  /** A frame is one whole watch event: a JSON document with a newline behind it, or a message with its 4-byte length before it. */
  push(chunk: Uint8Array, onFrame: (frame: Uint8Array) => void): void;
  /** True if no part of an event is held: the stream may end here. */
  readonly atBoundary: boolean;
}

/**
 * Makes a splitter for one watch response.
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

/** A JSON Table event without the rows that are foreign or cannot be read; the other bytes stay. Throws `CODEC_MALFORMED` if it is none. */
export function filterTableFrame(frame: Uint8Array, keep: Keep, options: ReadOptions = {}): Uint8Array {
  return filterJsonTableFrame(frame, keep, options);
}
