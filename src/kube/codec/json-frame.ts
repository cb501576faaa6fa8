// Reads one JSON watch event in one pass: its keys and those of its object, no deeper. Used through watch-frames.ts and by
// the renamer.
import { type KeyMatch, type KeyName, keyName, NEED_MORE } from "./json-cursor.ts";
import { applyEdits, SequenceCuts } from "./json-edit.ts";
import { JsonObjectReader } from "./json-object.ts";
import { OPEN_BRACE, OPEN_BRACKET, QUOTE } from "./json-scan.ts";
import { asBuffer, codecError, type ItemMeta, type Keep } from "./types.ts";
import { isWatchEventType, type WatchEventType, type WatchFrame } from "./watch-event.ts";

const TYPE = keyName("type");
const OBJECT = keyName("object");
const KIND = keyName("kind");
const API_VERSION = keyName("apiVersion");
const ROWS = keyName("rows");

/** A JSON watch event, with the places of its parts in the frame. */
export interface JsonEvent {
  readonly type: WatchEventType;
  readonly objectStart: number;
  readonly objectEnd: number;
  /** The object's metadata; undefined if it cannot be read with certainty. */
  readonly meta: ItemMeta | undefined;
  /** Where the rows of a metav1.Table begin; undefined if the object is none. */
  readonly rowsStart: number | undefined;
}

/** Reads the WatchFrame of a JSON event. */
export function readJsonFrame(frame: Uint8Array): WatchFrame {
  const bytes = asBuffer(frame);
  const { type, meta, rowsStart } = readJsonEvent(bytes);
  if (type === "ERROR") return { type, objects: [], unreadable: 0, isTable: false };
  if (rowsStart === undefined) {
    return { type, objects: meta === undefined ? [] : [meta], unreadable: meta === undefined ? 1 : 0, isTable: false };
  }
  const objects: ItemMeta[] = [];
  let unreadable = 0;
  forEachRow(bytes, rowsStart, (row) => {
    if (row === undefined) unreadable++;
    else objects.push(row);
  });
  return { type, objects, unreadable, isTable: true };
}

/** See `filterTableFrame`. */
export function filterJsonTableFrame(frame: Uint8Array, keep: Keep): Uint8Array {
  const bytes = asBuffer(frame);
  const { rowsStart } = readJsonEvent(bytes);
  if (rowsStart === undefined) throw malformed("no Table");
  const sequence = new SequenceCuts(bytes);
  forEachRow(bytes, rowsStart, (row, start, end) => sequence.add(start, end, row === undefined || !keep(row)));
  return applyEdits(bytes, sequence.cuts);
}

/** Reads a whole event. Throws `CODEC_MALFORMED`. */
export function readJsonEvent(bytes: Buffer): JsonEvent {
  try {
    return new EventReader(bytes).read();
  } catch (thrown) {
    throw thrown === NEED_MORE ? malformed("it ends inside the document") : thrown;
  }
}

class EventReader {
  readonly #reader = new JsonObjectReader();
  readonly #bytes: Buffer;
  #type: string | undefined;
  #kind: string | undefined;
  #apiVersion: string | undefined;
  #objectStart = 0;
  #objectEnd = 0;
  #rowsStart: number | undefined;
  #rowsAmbiguous = false;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  read(): JsonEvent {
    const cursor = this.#reader.cursor.reset(this.#bytes, 0, this.#bytes.length);
    if (!cursor.enter(OPEN_BRACE)) throw malformed("no object");
    for (let first = true; cursor.nextMember(first); first = false) {
      if (this.#is(TYPE, this.#type !== undefined)) this.#type = this.#readText();
      else if (this.#is(OBJECT, this.#objectEnd > 0)) this.#readObject();
      else cursor.skipValue();
    }
    if (!isWatchEventType(this.#type)) throw malformed("an unknown event type");
    if (this.#objectEnd === 0) throw malformed("no object in the event");
    return { type: this.#type, objectStart: this.#objectStart, objectEnd: this.#objectEnd, ...this.#content() };
  }

  #content(): Pick<JsonEvent, "meta" | "rowsStart"> {
    const { readable, namespace, name } = this.#reader;
    if (this.#kind === "Table" && this.#apiVersion?.startsWith("meta.k8s.io/")) {
      if (this.#rowsAmbiguous || this.#rowsStart === undefined) throw malformed("a Table without rows or with two");
      return { meta: undefined, rowsStart: this.#rowsStart };
    }
    return { meta: readable ? { namespace, name } : undefined, rowsStart: undefined };
  }

  #readObject(): void {
    const { cursor } = this.#reader;
    this.#objectStart = cursor.position;
    this.#reader.begin();
    if (!cursor.enter(OPEN_BRACE)) throw malformed("an event's object is no object");
    for (let first = true; cursor.nextMember(first); first = false) this.#readMember();
    this.#reader.finish();
    this.#objectEnd = cursor.position;
  }

  #readMember(): void {
    const { cursor } = this.#reader;
    // A custom resource may have a field Kind or Rows: only what says that this is a Table must be beyond doubt.
    const kind = cursor.matches(KIND);
    const apiVersion = cursor.matches(API_VERSION);
    const rows = cursor.matches(ROWS);
    if (kind !== "no") this.#kind = this.#readType(kind, this.#kind);
    else if (apiVersion !== "no") this.#apiVersion = this.#readType(apiVersion, this.#apiVersion);
    else if (rows !== "no") {
      if (rows === "variant" || this.#rowsStart !== undefined) this.#rowsAmbiguous = true;
      this.#rowsStart = cursor.position;
      cursor.skipValue();
    } else this.#reader.readMember();
  }

  // The kind or version; an object that has it twice is not readable. In another case it is a custom resource's own field.
  #readType(match: KeyMatch, before: string | undefined): string | undefined {
    if (match === "exact" && before === undefined) return this.#readText();
    if (match === "exact") this.#reader.readable = false;
    this.#reader.cursor.skipValue();
    return before;
  }

  #is(name: KeyName, seen: boolean): boolean {
    const match = this.#reader.cursor.matches(name);
    if (match === "no") return false;
    if (match === "variant" || seen) throw malformed(`the key ${name.text} twice or in another case`);
    return true;
  }

  #readText(): string {
    const { cursor } = this.#reader;
    if (cursor.peek() === QUOTE) {
      cursor.readString();
      return cursor.stringText() ?? "";
    }
    cursor.skipValue();
    return "";
  }
}

/** Calls back with each row of a Table: the metadata of its object, or undefined, and the row's place. */
function forEachRow(
  bytes: Buffer,
  rowsStart: number,
  onRow: (row: ItemMeta | undefined, start: number, end: number) => void,
): void {
  const reader = new JsonObjectReader();
  const cursor = reader.cursor.reset(bytes, rowsStart, bytes.length);
  if (!cursor.enter(OPEN_BRACKET)) {
    if (bytes.toString("latin1", cursor.position, cursor.position + 4) === "null") return;
    throw malformed("a Table's rows are no array");
  }
  for (let first = true; cursor.nextElement(first); first = false) {
    const start = cursor.position;
    reader.readRow();
    onRow(reader.readable ? { namespace: reader.namespace, name: reader.name } : undefined, start, cursor.position);
  }
}

function malformed(what: string): Error {
  return codecError("CODEC_MALFORMED", `reading a JSON watch event: ${what}`);
}
