// Renames in JSON text by replacing strings.
import { applyEdits, asBuffer, type Edit } from "../base/bytes.ts";
import { codecError, isStatusType, isTableType, type ListPart, type Rename, renameInMessage, renameName } from "../base/types.ts";
import { readJsonEvent } from "./frame.ts";
import { JsonObjectReader } from "./object.ts";
import { type KeyName, keyName } from "./string.ts";
import { forEachElement, forEachMember, readText, walkerAt } from "./text.ts";

const KEYS = {
  kind: keyName("kind"),
  apiVersion: keyName("apiVersion"),
  rows: keyName("rows"),
  cells: keyName("cells"),
  message: keyName("message"),
  details: keyName("details"),
  name: keyName("name"),
} satisfies Record<string, KeyName>;

export function renameObject(body: Uint8Array, rename: Rename): Uint8Array {
  const bytes = asBuffer(body);
  return edited(body, documentEdits(bytes, 0, rename));
}

export function renameFrame(frame: Uint8Array, rename: Rename): Uint8Array {
  const bytes = asBuffer(frame);
  return edited(frame, documentEdits(bytes, readJsonEvent(bytes).objectStart, rename));
}

export function renameElement(element: Uint8Array, part: ListPart, rename: Rename): Uint8Array {
  const bytes = asBuffer(element);
  return edited(element, part === "row" ? rowEdits(bytes, 0, rename) : nameEdits(bytes, 0, "item", rename));
}

function edited(body: Uint8Array, edits: Edit[]): Uint8Array {
  return applyEdits(
    body,
    edits.sort((a, b) => a.start - b.start),
  );
}

function documentEdits(bytes: Buffer, start: number, rename: Rename): Edit[] {
  const kind = textAt(bytes, findMember(bytes, start, KEYS.kind));
  const apiVersion = textAt(bytes, findMember(bytes, start, KEYS.apiVersion));
  if (isStatusType({ apiVersion, kind })) return statusEdits(bytes, start, rename);
  if (!isTableType({ apiVersion, kind })) return nameEdits(bytes, start, "item", rename);
  const rows = findMember(bytes, start, KEYS.rows);
  return rows === undefined ? [] : elementsOf(bytes, rows).flatMap((row) => rowEdits(bytes, row, rename));
}

// kubectl prints the cells, so they are renamed too.
function rowEdits(bytes: Buffer, start: number, rename: Rename): Edit[] {
  const edits = nameEdits(bytes, start, "row", rename);
  const cells = edits.length === 0 ? undefined : findMember(bytes, start, KEYS.cells);
  if (cells === undefined) return edits;
  return [...edits, ...elementsOf(bytes, cells).flatMap((cell) => textEdits(bytes, cell, (text) => renameName(text, rename)))];
}

function nameEdits(bytes: Buffer, start: number, part: ListPart, { from, to }: Rename): Edit[] {
  const reader = new JsonObjectReader(walkerAt(bytes, start));
  reader.readWhole(part);
  const { ambiguous, nameStart, nameEnd, name } = reader;
  if (ambiguous) throw codecError("CODEC_AMBIGUOUS", "renaming in JSON: name or metadata occurs twice or in another case");
  if (nameStart === 0 || name !== from) return [];
  return [{ start: nameStart, end: nameEnd, replacement: Buffer.from(JSON.stringify(to)) }];
}

function statusEdits(bytes: Buffer, start: number, rename: Rename): Edit[] {
  const details = findMember(bytes, start, KEYS.details);
  const name = details === undefined ? undefined : findMember(bytes, details, KEYS.name);
  return [
    ...textEdits(bytes, findMember(bytes, start, KEYS.message), (text) => renameInMessage(text, rename)),
    ...textEdits(bytes, name, (text) => renameName(text, rename)),
  ];
}

function textEdits(bytes: Buffer, start: number | undefined, change: (text: string) => string): Edit[] {
  if (start === undefined) return [];
  const walker = walkerAt(bytes, start);
  const text = readText(walker);
  const changed = text === undefined ? text : change(text);
  if (changed === undefined || changed === text) return [];
  return [{ start, end: walker.valueEnd, replacement: Buffer.from(JSON.stringify(changed)) }];
}

/** Where the value of this key begins in the object at `start`; undefined for no key, or no object. */
function findMember(bytes: Buffer, start: number, name: KeyName): number | undefined {
  const walker = walkerAt(bytes, start);
  let found: number | undefined;
  forEachMember(walker, () => {
    if (walker.matches(name) !== "exact") return;
    if (found !== undefined) throw codecError("CODEC_AMBIGUOUS", `renaming in JSON: the key ${name.text} occurs twice`);
    found = walker.valueStart;
  });
  return found;
}

/** Where the elements of the array at `start` begin; empty if there is no array. */
function elementsOf(bytes: Buffer, start: number): number[] {
  const walker = walkerAt(bytes, start);
  const starts: number[] = [];
  forEachElement(walker, () => starts.push(walker.valueStart));
  return starts;
}

function textAt(bytes: Buffer, start: number | undefined): string {
  return (start === undefined ? undefined : readText(walkerAt(bytes, start))) ?? "";
}
