// Renames leader-election locks in bodies, in both directions. Only the name changes, and in protobuf the
// lengths around it; for a body that does not name the lock the result is the same array. Called by the
// proxy's election layer on one object, one event or one element of a list.

import type { Rename } from "./base/renamed-text.ts";
import type { Encoding, Rewrite } from "./base/types.ts";
import { renameJsonElement, renameJsonFrame, renameJsonObject } from "./json/rename.ts";
import { renameProtobufElement, renameProtobufFrame, renameProtobufObject } from "./protobuf/rename.ts";

export type { Rename } from "./base/renamed-text.ts";

/**
 * Renames one object of any kind. In a Status `details.name` and the quoted name in the message change
 * instead, in a Table the rows' objects and their cells.
 * @throws MeshError `CODEC_MALFORMED`; `CODEC_AMBIGUOUS` if the name occurs twice or in another case
 */
export function renameObject(encoding: Encoding, body: Uint8Array, rename: Rename): Uint8Array {
  return encoding === "json" ? renameJsonObject(body, rename) : renameProtobufObject(body, rename);
}

/** Renames in one watch event of any type. Throws like `renameObject`. */
export function renameFrame(encoding: Encoding, frame: Uint8Array, rename: Rename): Uint8Array {
  return encoding === "json" ? renameJsonFrame(frame, rename) : renameProtobufFrame(frame, rename);
}

/** Renames the element of a list that has the name, for `createListFilter`. Throws like `renameObject`. */
export function elementRenamer(encoding: Encoding, rename: Rename): Rewrite {
  return (element, { name }, part) => {
    if (name !== rename.from) return element;
    return encoding === "json" ? renameJsonElement(element, part, rename) : renameProtobufElement(element, rename);
  };
}
