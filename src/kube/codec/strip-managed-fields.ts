// Removes `metadata.managedFields` from objects. These are a quarter of the bytes that an informer receives,
// and few operators read them. All other bytes stay, except for the lengths around the field in protobuf. For
// a body without managedFields the result is the same array. Called by the proxy for VirtualApps with the
// annotation strip-managed-fields.
//
// A body that cannot be read passes unchanged, since stripping hides nothing.
import { applyEdits, type Edit } from "./base/byte-edit.ts";
import { asBuffer, type Encoding, isCodecError, type Rewrite } from "./base/types.ts";
import { jsonElementCuts, jsonFrameCuts, jsonObjectCuts } from "./json/managed-fields.ts";
import { JsonWalker } from "./json/walker.ts";
import { protobufElementCuts, protobufFrameCuts, protobufObjectCuts } from "./protobuf/managed-fields.ts";

/** One object without managedFields; of a list each item, of a Table each row's object. Never throws. */
export function stripObject(encoding: Encoding, body: Uint8Array): Uint8Array {
  return stripped(body, encoding === "json" ? jsonObjectCuts : protobufObjectCuts);
}

/** One whole watch event of any type without managedFields. Never throws. */
export function stripFrame(encoding: Encoding, frame: Uint8Array): Uint8Array {
  return stripped(frame, encoding === "json" ? jsonFrameCuts : protobufFrameCuts);
}

/** Strips the kept elements of a list, for `createListFilter`. Never throws. */
export function elementStripper(encoding: Encoding): Rewrite {
  if (encoding === "protobuf") return (element) => stripped(element, protobufElementCuts);
  const walker = new JsonWalker();
  return (element, _meta, part) =>
    stripped(element, (bytes) => {
      walker.start(bytes, 0, bytes.length).next();
      return jsonElementCuts(walker, part);
    });
}

function stripped(body: Uint8Array, findCuts: (bytes: Buffer) => readonly Edit[]): Uint8Array {
  try {
    return applyEdits(body, findCuts(asBuffer(body)));
  } catch (thrown) {
    if (isCodecError(thrown)) return body;
    throw thrown;
  }
}
