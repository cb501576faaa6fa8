// Renames in JSON text by replacing string tokens. Used through rename.ts.
import { JsonCursor, type KeyName, keyName, NEED_MORE } from "./json-cursor.ts";
import { applyEdits, type Edit } from "./json-edit.ts";
import { readJsonEvent } from "./json-frame.ts";
import { JsonObjectReader } from "./json-object.ts";
import { OPEN_BRACE, OPEN_BRACKET, QUOTE } from "./json-scan.ts";
import type { Rename } from "./rename.ts";
import { renameInMessage } from "./status-message.ts";
import { asBuffer, codecError, type ListPart } from "./types.ts";

const KEYS = {
  kind: keyName("kind"),
  apiVersion: keyName("apiVersion"),
  rows: keyName("rows"),
  cells: keyName("cells"),
  message: keyName("message"),
  details: keyName("details"),
  name: keyName("name"),
} satisfies Record<string, KeyName>;

/** Renames in one object, a Status or a Table. */
export function renameJsonObject(body: Uint8Array, rename: Rename): Uint8Array {
  const bytes = asBuffer(body);
  return edited(body, () => documentEdits(bytes, 0, rename));
}

/** Renames in the object of an event. */
export function renameJsonFrame(frame: Uint8Array, rename: Rename): Uint8Array {
  const bytes = asBuffer(frame);
  return edited(frame, () => documentEdits(bytes, readJsonEvent(bytes).objectStart, rename));
}

/** Renames in an item of a list, or in a row of a Table. */
export function renameJsonElement(element: Uint8Array, part: ListPart, rename: Rename): Uint8Array {
  const bytes = asBuffer(element);
  return edited(element, () => (part === "row" ? rowEdits(bytes, 0, rename) : objectEdits(bytes, 0, rename)));
}

function edited(body: Uint8Array, findEdits: () => Edit[]): Uint8Array {
  try {
    return applyEdits(
      body,
      findEdits().sort((a, b) => a.start - b.start),
    );
  } catch (thrown) {
    throw thrown === NEED_MORE ? codecError("CODEC_MALFORMED", "renaming in JSON: the text ends inside the document") : thrown;
  }
}

function documentEdits(bytes: Buffer, start: number, rename: Rename): Edit[] {
  const kind = textAt(bytes, findMember(bytes, start, KEYS.kind));
  const apiVersion = textAt(bytes, findMember(bytes, start, KEYS.apiVersion));
  if (kind === "Status" && apiVersion === "v1") return statusEdits(bytes, start, rename);
  if (kind !== "Table" || !apiVersion?.startsWith("meta.k8s.io/")) return objectEdits(bytes, start, rename);
  const rows = findMember(bytes, start, KEYS.rows);
  return rows === undefined ? [] : elementsOf(bytes, rows).flatMap((row) => rowEdits(bytes, row, rename));
}

function objectEdits(bytes: Buffer, start: number, rename: Rename): Edit[] {
  const reader = new JsonObjectReader();
  reader.cursor.reset(bytes, start, bytes.length);
  reader.readObject();
  return nameEdits(reader, rename);
}

// kubectl prints the cells, so the name is translated there too.
function rowEdits(bytes: Buffer, start: number, rename: Rename): Edit[] {
  const reader = new JsonObjectReader();
  reader.cursor.reset(bytes, start, bytes.length);
  reader.readRow();
  const edits = nameEdits(reader, rename);
  const cells = edits.length === 0 ? undefined : findMember(bytes, start, KEYS.cells);
  if (cells === undefined) return edits;
  return [
    ...edits,
    ...elementsOf(bytes, cells).flatMap((cell) => textEdits(bytes, cell, (text) => (text === rename.from ? rename.to : text))),
  ];
}

function nameEdits({ ambiguous, nameStart, nameEnd, name }: JsonObjectReader, { from, to }: Rename): Edit[] {
  if (ambiguous) throw codecError("CODEC_AMBIGUOUS", "renaming in JSON: the name or metadata twice or in another case");
  if (nameStart === 0 || name !== from) return [];
  return [{ start: nameStart, end: nameEnd, replacement: Buffer.from(JSON.stringify(to)) }];
}

function statusEdits(bytes: Buffer, start: number, rename: Rename): Edit[] {
  const details = findMember(bytes, start, KEYS.details);
  const name = details === undefined ? undefined : findMember(bytes, details, KEYS.name);
  return [
    ...textEdits(bytes, findMember(bytes, start, KEYS.message), (text) => renameInMessage(text, rename)),
    ...textEdits(bytes, name, (text) => (text === rename.from ? rename.to : text)),
  ];
}

function textEdits(bytes: Buffer, start: number | undefined, change: (text: string) => string): Edit[] {
  const text = textAt(bytes, start);
  if (text === undefined || start === undefined) return [];
  const changed = change(text);
  if (changed === text) return [];
  const cursor = new JsonCursor().reset(bytes, start, bytes.length);
  cursor.readString();
  return [{ start, end: cursor.position, replacement: Buffer.from(JSON.stringify(changed)) }];
}

/** Where the value of this key begins in the object at `start`; undefined if it is not there or no object stands there. */
function findMember(bytes: Buffer, start: number, name: KeyName): number | undefined {
  const cursor = new JsonCursor().reset(bytes, start, bytes.length);
  if (!cursor.enter(OPEN_BRACE)) return undefined;
  let found: number | undefined;
  for (let first = true; cursor.nextMember(first); first = false) {
    const match = cursor.matches(name);
    if (match === "exact" && found !== undefined)
      throw codecError("CODEC_AMBIGUOUS", `renaming in JSON: the key ${name.text} twice`);
    if (match === "exact") found = cursor.position;
    cursor.skipValue();
  }
  return found;
}

/** Where the elements of the array at `start` begin; none if it is no array. */
function elementsOf(bytes: Buffer, start: number): number[] {
  const cursor = new JsonCursor().reset(bytes, start, bytes.length);
  const starts: number[] = [];
  if (!cursor.enter(OPEN_BRACKET)) return starts;
  for (let first = true; cursor.nextElement(first); first = false) {
    starts.push(cursor.position);
    cursor.skipValue();
  }
  return starts;
}

function textAt(bytes: Buffer, start: number | undefined): string | undefined {
  if (start === undefined || bytes[start] !== QUOTE) return undefined;
  const cursor = new JsonCursor().reset(bytes, start, bytes.length);
  cursor.readString();
  return cursor.stringText();
}
