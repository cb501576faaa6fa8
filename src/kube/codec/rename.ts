// Renames leader-election locks in bodies, both ways. Invariant: only the name changes, at its one place; every other byte
// stays (in protobuf the lengths around it, too). A body that does not name the lock comes back as the same array. Called by
// the proxy's election layer, on bodies of one object or of the few locks of a namespace, which are held whole.
import { renameJsonFrame, renameJsonItems, renameJsonObject } from "./json-rename.ts";
import { createListFilter } from "./list-filter.ts";
import { renameProtobufFrame, renameProtobufItems, renameProtobufObject } from "./protobuf-rename.ts";
import type { Encoding, Keep } from "./types.ts";

/** `metadata.name` equal to `from` becomes `to`. */
export interface Rename {
  readonly from: string;
  readonly to: string;
}

/**
 * Renames one object: Lease, ConfigMap, Endpoints, any kind. In a Status `details.name` and the quoted name in the message
 * change instead; in a Table the rows' objects and their cells.
 * @throws MeshError `CODEC_MALFORMED`; `CODEC_AMBIGUOUS` if the name stands there twice or in another case
 */
export function renameObject(encoding: Encoding, body: Uint8Array, rename: Rename): Uint8Array {
  return encoding === "json" ? renameJsonObject(body, rename) : renameProtobufObject(body, rename);
}

/** Renames in one watch event, whatever its type. Throws as `renameObject`. */
export function renameFrame(encoding: Encoding, frame: Uint8Array, rename: Rename): Uint8Array {
  return encoding === "json" ? renameJsonFrame(frame, rename) : renameProtobufFrame(frame, rename);
}

/**
 * Filters a whole list, then renames. A Status is translated like an object.
 * @param keep is asked with the names before the rename
 * @throws MeshError as `createListFilter` and `renameObject`
 */
export function renameList(encoding: Encoding, body: Uint8Array, rename: Rename, keep: Keep): Uint8Array {
  const filter = createListFilter(encoding, keep, { maxHeldBytes: body.length });
  const slices: Uint8Array[] = [];
  const collect = (slice: Uint8Array): void => {
    slices.push(slice);
  };
  filter.push(body, collect);
  filter.end(collect);
  const filtered = Buffer.concat(slices);
  return encoding === "json" ? renameJsonItems(filtered, rename) : renameProtobufItems(filtered, rename);
}
