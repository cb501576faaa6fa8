// Renames in protobuf messages: replaces the innermost field and rewrites the lengths around it.
import { isStatusType, type ListPart, type Rename, renameInMessage, renameName } from "../base/types.ts";
import { readEnvelope } from "./envelope.ts";
import { eventOf, framePrefix } from "./frame.ts";
import { ENVELOPE_PREFIX, replaceField } from "./wire.ts";

export function renameObject(body: Uint8Array, rename: Rename): Uint8Array {
  const status = isStatusType(readEnvelope(body).type);
  return rewriteRaw(body, (raw) => (status ? renameStatus(raw, rename) : renameMeta(raw, rename)));
}

export function renameFrame(frame: Uint8Array, rename: Rename): Uint8Array {
  const event = eventOf(frame);
  const renamed = replaceField(event, 2, (extension) => replaceField(extension, 1, (body) => renameObject(body, rename)));
  if (renamed === event) return frame;
  return Buffer.concat([framePrefix(renamed.length), renamed]);
}

/** Renames in an item of a list, which has no envelope of its own. */
export function renameElement(item: Uint8Array, _part: ListPart, rename: Rename): Uint8Array {
  return renameMeta(item, rename);
}

function rewriteRaw(body: Uint8Array, rewrite: (raw: Buffer) => Uint8Array): Uint8Array {
  const envelope = body.subarray(ENVELOPE_PREFIX.length);
  const rewritten = replaceField(envelope, 2, rewrite);
  return rewritten === envelope ? body : Buffer.concat([ENVELOPE_PREFIX, rewritten]);
}

// Field 1 of an object is its ObjectMeta, whose field 1 is the name.
function renameMeta(object: Uint8Array, rename: Rename): Uint8Array {
  return replaceField(object, 1, (meta) => replaceName(meta, rename));
}

// metav1.Status: field 3 is the message, field 5 the details, whose field 1 is the name.
function renameStatus(status: Buffer, rename: Rename): Uint8Array {
  const translated = replaceField(status, 3, (message) => changeText(message, (text) => renameInMessage(text, rename)));
  return replaceField(translated, 5, (details) => replaceName(details, rename));
}

function replaceName(message: Buffer, rename: Rename): Uint8Array {
  return replaceField(message, 1, (name) => changeText(name, (text) => renameName(text, rename)));
}

/** The same array if the text does not change. */
function changeText(bytes: Buffer, change: (text: string) => string): Buffer {
  const text = bytes.toString("utf8");
  const changed = change(text);
  return changed === text ? bytes : Buffer.from(changed);
}
