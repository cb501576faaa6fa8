// The contracts of the watch readers, in either encoding. Used through watch-frames.ts.
import type { ItemMeta } from "./types.ts";

const TYPES = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"] as const;

/** The types that client-go knows. It ends the watch at any other type. */
export type WatchEventType = (typeof TYPES)[number];

/** The parts of a watch event that the filter reads. */
export interface WatchFrame {
  readonly type: WatchEventType;
  /**
   * The objects whose metadata can be read with certainty: at most one, unless the event has a Table. None
   * for ERROR.
   */
  readonly objects: readonly ItemMeta[];
  /**
   * How many objects cannot be read with certainty. Such an event must not be forwarded whole, unless it is a
   * BOOKMARK or ERROR.
   */
  readonly unreadable: number;
  /** True for a JSON event with a metav1.Table. `filterTableFrame` can drop its rows one by one. */
  readonly isTable: boolean;
}

/**
 * Cuts a watch stream into frames. Throws `CODEC_MALFORMED` and `CODEC_TOO_LARGE`, and must not be used after
 * that.
 */
export interface FrameSplitter {
  /** A frame is one whole watch event: a JSON document and a newline, or a 4-byte length and a message. */
  push(chunk: Uint8Array, onFrame: (frame: Uint8Array) => void): void;
  /** True if no part of an event is held, so the stream may end. */
  readonly atBoundary: boolean;
}

/** True for the five event types. */
export function isWatchEventType(text: string | undefined): text is WatchEventType {
  return TYPES.some((type) => type === text);
}
