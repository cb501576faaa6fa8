// Renames leader-election locks in bodies, both ways. Invariant: only the name changes, at its one place; every other byte
// stays (in protobuf the lengths around it, too). A body that does not name the lock comes back as the same array. Called by
// the proxy's election layer, on one object, one event or one element of a list, which are held whole.
import { renameJsonElement, renameJsonFrame, renameJsonObject } from "./json-rename.ts";
import { renameProtobufElement, renameProtobufFrame, renameProtobufObject } from "./protobuf-rename.ts";
import type { Rename } from "./renamed-text.ts";
import type { Encoding, Rewrite } from "./types.ts";

export type { Rename } from "./renamed-text.ts";

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

/** Renames the one element of a list that has the name, for `createListFilter`. Throws as `renameObject`. */
export function elementRenamer(encoding: Encoding, rename: Rename): Rewrite {
  return (element, { name }, part) => {
    if (name !== rename.from) return element;
    return encoding === "json" ? renameJsonElement(element, part, rename) : renameProtobufElement(element, rename);
  };
}
