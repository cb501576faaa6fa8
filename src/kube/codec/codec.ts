// Kubernetes' wire formats: lists, watch events, objects and Statuses, in JSON and in protobuf. The codecs
// read as little as possible and pass on the original bytes. Invariant: an object that cannot be read with
// certainty is left out or refused. All functions throw MeshError `CODEC_*`.
import type { Version } from "../resource-version.ts";
import type { Status } from "../status.ts";
import { applyEdits, asBuffer, type Edit } from "./base/bytes.ts";
import type { ListFilterOptions } from "./base/element-filter.ts";
import {
  codecError,
  DEFAULT_MAX_BYTES,
  type Encoding,
  type FrameSplitter,
  type ItemMeta,
  isCodecError,
  type Keep,
  type ListFilter,
  type ListJoiner,
  type ListMeta,
  type ReadOptions,
  type Rename,
  type Rewrite,
  type WatchFrame,
} from "./base/types.ts";
import * as json from "./json/codec.ts";
import * as protobuf from "./protobuf/codec.ts";

export type { ListFilterOptions } from "./base/element-filter.ts";
export type * from "./base/types.ts";
export { codecError, DEFAULT_MAX_BYTES, isCodecError } from "./base/types.ts";
export { filterTableFrame } from "./json/frame.ts";

/** The functions of one encoding. json/ and protobuf/ have the same files for the same tasks. */
export function codecOf(encoding: Encoding): typeof json | typeof protobuf {
  return encoding === "json" ? json : protobuf;
}

/**
 * A filter for one list response. Kept items pass byte for byte, or rewritten. Foreign and unreadable items
 * are left out, and so is `remainingItemCount` when an item may be left out. A Status passes unchanged.
 * @throws MeshError (by push and end) any `CODEC_*` but `CODEC_AMBIGUOUS`
 */
export function createListFilter(encoding: Encoding, keep: Keep, options: ListFilterOptions = {}): ListFilter {
  return codecOf(encoding).createListFilter(keep, options);
}

/**
 * Joins lists of one version. The result has the items of all lists, and the other bytes of the first.
 * @param maxHeldBytes protobuf only, where the length comes first: bound of the held items
 * (`CODEC_TOO_LARGE`)
 */
export function createListJoiner(encoding: Encoding, version: Version, maxHeldBytes: number): ListJoiner {
  return codecOf(encoding).createListJoiner(version, maxHeldBytes);
}

export function readListMeta(encoding: Encoding, body: Uint8Array): ListMeta {
  return codecOf(encoding).readListMeta(body);
}

/**
 * Cuts one watch response into whole events. A frame is passed on as soon as its last byte is there.
 * @param maxFrameBytes upper bound of one event; more is `CODEC_TOO_LARGE`
 */
export function createFrameSplitter(encoding: Encoding, maxFrameBytes = DEFAULT_MAX_BYTES): FrameSplitter {
  return codecOf(encoding).createFrameSplitter(maxFrameBytes);
}

export function readFrame(encoding: Encoding, frame: Uint8Array, options: ReadOptions = {}): WatchFrame {
  return codecOf(encoding).readFrame(frame, options);
}

/** Throws `CODEC_AMBIGUOUS` if two decoders could read the object differently. */
export function readObjectMeta(encoding: Encoding, body: Uint8Array, options: ReadOptions = {}): ItemMeta {
  const meta = codecOf(encoding).readObjectMeta(body, options);
  if (meta === undefined) throw codecError("CODEC_AMBIGUOUS", "reading an object: its metadata cannot be read with certainty");
  return meta;
}

/**
 * Renames one object of any kind. In a Status `details.name` and the quoted name in the message change, in a
 * Table the rows' objects and their cells. A body without the name is returned as the same array.
 * @throws MeshError `CODEC_MALFORMED`; `CODEC_AMBIGUOUS` if the name occurs twice or in another case
 */
export function renameObject(encoding: Encoding, body: Uint8Array, rename: Rename): Uint8Array {
  return codecOf(encoding).renameObject(body, rename);
}

/** Renames in one watch event of any type. Throws like `renameObject`. */
export function renameFrame(encoding: Encoding, frame: Uint8Array, rename: Rename): Uint8Array {
  return codecOf(encoding).renameFrame(frame, rename);
}

/** For `createListFilter`: renames the element that has the name. Throws like `renameObject`. */
export function elementRenamer(encoding: Encoding, rename: Rename): Rewrite {
  const { renameElement } = codecOf(encoding);
  return (element, { name }, part) => (name === rename.from ? renameElement(element, part, rename) : element);
}

/**
 * Removes `metadata.managedFields`, a quarter of the bytes that an informer receives, from an object, from
 * each item of a list, or from each row's object of a Table. A body without them, or one that cannot be read,
 * is returned as the same array, since stripping hides nothing.
 */
export function stripObject(encoding: Encoding, body: Uint8Array): Uint8Array {
  return stripped(body, codecOf(encoding).objectCuts);
}

export function stripFrame(encoding: Encoding, frame: Uint8Array): Uint8Array {
  return stripped(frame, codecOf(encoding).frameCuts);
}

/** For `createListFilter`: removes the managedFields of the kept elements. */
export function elementStripper(encoding: Encoding): Rewrite {
  const elementCuts = codecOf(encoding).createElementCuts();
  return (element, _meta, part) => stripped(element, (bytes) => elementCuts(bytes, part));
}

function stripped(body: Uint8Array, findCuts: (bytes: Buffer) => readonly Edit[]): Uint8Array {
  try {
    return applyEdits(body, findCuts(asBuffer(body)));
  } catch (thrown) {
    if (isCodecError(thrown)) return body;
    throw thrown;
  }
}

/** A Status as a response body: JSON with a newline, or `k8s\0` and runtime.Unknown. */
export function encodeStatus(encoding: Encoding, status: Status): Uint8Array {
  return codecOf(encoding).encodeStatus(status);
}

/** A whole watch frame of type ERROR that carries the Status. client-go lists again when its code is 410. */
export function encodeErrorFrame(encoding: Encoding, status: Status): Uint8Array {
  return codecOf(encoding).encodeErrorFrame(status);
}

/** The message of a Status in a response body; "" if the body cannot be read. */
export function readStatusMessage(encoding: Encoding, body: Uint8Array): string {
  try {
    return codecOf(encoding).readStatusMessage(body);
  } catch {
    return "";
  }
}
