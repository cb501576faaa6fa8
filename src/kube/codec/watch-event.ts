// What the filter reads of a watch event, in either encoding. Apart from watch-frames.ts only so that the readers of the two
// encodings can import it.
import type { ItemMeta } from "./types.ts";

const TYPES = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"] as const;

/** The types that client-go knows; it ends the watch at any other. */
export type WatchEventType = (typeof TYPES)[number];

/** What the filter reads of a watch event. */
export interface WatchFrame {
  readonly type: WatchEventType;
  /** The objects whose metadata can be read with certainty: one at most, unless it is a Table. None for ERROR. */
  readonly objects: readonly ItemMeta[];
  /** Objects that cannot: an event that has any must not be forwarded whole, unless it is a BOOKMARK or ERROR. */
  readonly unreadable: number;
  /** A JSON event with a metav1.Table, whose rows may be dropped one by one with `filterTableFrame`. */
  readonly isTable: boolean;
}

/** Cuts a watch stream into frames. Throws `CODEC_MALFORMED` and `CODEC_TOO_LARGE`; it must not be used after that. */
export interface FrameSplitter {
  /** A frame is one whole watch event: a JSON document with a newline behind it, or a message with its 4-byte length before it. */
  push(chunk: Uint8Array, onFrame: (frame: Uint8Array) => void): void;
  /** True if no part of an event is held: the stream may end here. */
  readonly atBoundary: boolean;
}

/** True for the five event types. */
export function isWatchEventType(text: string | undefined): text is WatchEventType {
  return TYPES.some((type) => type === text);
}
