// JSON watch events. An event is read in one pass: its keys and the keys of its object, no deeper.
import { ByteWindow } from "../base/byte-window.ts";
import { applyEdits, asBuffer, equalsAscii } from "../base/bytes.ts";
import {
  codecError,
  type FrameSplitter,
  type ItemMeta,
  isTableType,
  isWatchEventType,
  type Keep,
  type ReadOptions,
  type WatchEventType,
  type WatchFrame,
} from "../base/types.ts";
import { JsonObjectReader } from "./object.ts";
import { NEWLINE, OPEN_BRACE, skipSpace } from "./scan.ts";
import { type KeyMatch, type KeyName, keyName } from "./string.ts";
import { forEachElement, forEachMember, readText, SequenceCuts, skipOver, walkerAt } from "./text.ts";
import { JsonWalker } from "./walker.ts";

const TYPE = keyName("type");
const OBJECT = keyName("object");
const KIND = keyName("kind");
const API_VERSION = keyName("apiVersion");
const ROWS = keyName("rows");

interface JsonEvent {
  readonly type: WatchEventType;
  readonly objectStart: number;
  /** The object's metadata; undefined if it cannot be read with certainty. */
  readonly meta: ItemMeta | undefined;
  /** Where the rows of a metav1.Table begin; undefined if the object is no Table. */
  readonly rowsStart: number | undefined;
}

export function readFrame(frame: Uint8Array, options: ReadOptions): WatchFrame {
  const bytes = asBuffer(frame);
  const { type, meta, rowsStart } = readJsonEvent(bytes, options);
  if (type === "ERROR") return { type, objects: [], unreadable: 0, isTable: false };
  if (rowsStart === undefined) {
    return { type, objects: meta === undefined ? [] : [meta], unreadable: meta === undefined ? 1 : 0, isTable: false };
  }
  const objects: ItemMeta[] = [];
  let unreadable = 0;
  forEachRow(bytes, rowsStart, options, (row) => {
    if (row === undefined) unreadable++;
    else objects.push(row);
  });
  return { type, objects, unreadable, isTable: true };
}

/** A Table event without foreign and unreadable rows. Throws `CODEC_MALFORMED` if the event has no Table. */
export function filterTableFrame(frame: Uint8Array, keep: Keep, options: ReadOptions = {}): Uint8Array {
  const bytes = asBuffer(frame);
  const { rowsStart } = readJsonEvent(bytes);
  if (rowsStart === undefined) throw malformed("the event has no Table");
  const sequence = new SequenceCuts(bytes);
  forEachRow(bytes, rowsStart, options, (row, start, end) => sequence.add(start, end, row === undefined || !keep(row)));
  return applyEdits(bytes, sequence.cuts);
}

/** Reads a whole event. Throws `CODEC_MALFORMED`. */
export function readJsonEvent(bytes: Buffer, options: ReadOptions = {}): JsonEvent {
  return new EventReader(bytes, options).read();
}

class EventReader {
  readonly #walker: JsonWalker;
  readonly #reader: JsonObjectReader;
  #type: string | undefined;
  #kind: string | undefined;
  #apiVersion: string | undefined;
  #objectStart = 0;
  #hasObject = false;
  #rowsStart: number | undefined;
  #rowsAmbiguous = false;

  constructor(bytes: Buffer, options: ReadOptions) {
    this.#walker = walkerAt(bytes);
    this.#reader = new JsonObjectReader(this.#walker, options, () => this.#readMember());
  }

  read(): JsonEvent {
    const isObject = forEachMember(this.#walker, () => {
      if (this.#isKey(TYPE, this.#type !== undefined)) this.#type = readText(this.#walker) ?? "";
      else if (this.#isKey(OBJECT, this.#hasObject)) this.#readObject();
    });
    if (!isObject) throw malformed("the event is not a JSON object");
    if (!isWatchEventType(this.#type)) throw malformed("the event type is unknown");
    if (!this.#hasObject) throw malformed("the event has no object");
    return { type: this.#type, objectStart: this.#objectStart, ...this.#content() };
  }

  #content(): Pick<JsonEvent, "meta" | "rowsStart"> {
    if (isTableType({ apiVersion: this.#apiVersion ?? "", kind: this.#kind ?? "" })) {
      if (this.#rowsAmbiguous || this.#rowsStart === undefined) throw malformed("a Table has no rows, or has them twice");
      return { meta: undefined, rowsStart: this.#rowsStart };
    }
    return { meta: this.#reader.meta, rowsStart: undefined };
  }

  #readObject(): void {
    const walker = this.#walker;
    if (walker.valueByte !== OPEN_BRACE) throw malformed("the event's object is not a JSON object");
    this.#objectStart = walker.valueStart;
    this.#reader.readWhole("item");
    this.#hasObject = true;
  }

  #readMember(): void {
    const walker = this.#walker;
    // A custom resource may have a field Kind or Rows, so another case makes only a Table ambiguous.
    const kind = walker.matches(KIND);
    const apiVersion = walker.matches(API_VERSION);
    const rows = walker.matches(ROWS);
    if (kind !== "no") this.#kind = this.#readType(kind, this.#kind);
    else if (apiVersion !== "no") this.#apiVersion = this.#readType(apiVersion, this.#apiVersion);
    else if (rows !== "no") {
      if (rows === "variant" || this.#rowsStart !== undefined) this.#rowsAmbiguous = true;
      this.#rowsStart = walker.valueStart;
    }
  }

  // A second kind or version makes the object unreadable. A key in another case is another field.
  #readType(match: KeyMatch, before: string | undefined): string | undefined {
    if (match === "exact" && before === undefined) return readText(this.#walker) ?? "";
    if (match === "exact") this.#reader.refuse();
    return before;
  }

  #isKey(name: KeyName, seen: boolean): boolean {
    const match = this.#walker.matches(name);
    if (match === "no") return false;
    if (match === "variant" || seen) throw malformed(`the key ${name.text} occurs twice or in another case`);
    return true;
  }
}

/** Calls back with the metadata of each row's object, which is undefined if it cannot be read. */
function forEachRow(
  bytes: Buffer,
  rowsStart: number,
  options: ReadOptions,
  onRow: (row: ItemMeta | undefined, start: number, end: number) => void,
): void {
  const walker = walkerAt(bytes, rowsStart);
  const reader = new JsonObjectReader(walker, options);
  const isArray = forEachElement(walker, () => {
    const start = walker.valueStart;
    reader.readWhole("row");
    onRow(reader.meta, start, walker.valueEnd);
  });
  if (isArray || equalsAscii(bytes, walker.valueStart, skipOver(walker), "null")) return;
  throw malformed("the rows of a Table are not an array");
}

function malformed(what: string): Error {
  return codecError("CODEC_MALFORMED", `reading a JSON watch event: ${what}`);
}

/** Splits a stream into its documents. Each frame ends with one newline, for clients that read lines. */
export function createFrameSplitter(maxFrameBytes: number): FrameSplitter {
  return new JsonFrameSplitter(maxFrameBytes);
}

class JsonFrameSplitter implements FrameSplitter {
  readonly #maxFrameBytes: number;
  readonly #window = new ByteWindow();
  readonly #walker = new JsonWalker();
  #start = 0;
  #inDocument = false;

  constructor(maxFrameBytes: number) {
    this.#maxFrameBytes = maxFrameBytes;
  }

  get atBoundary(): boolean {
    return !this.#inDocument;
  }

  get heldBytes(): number {
    return this.#window.heldBytes;
  }

  push(chunk: Uint8Array, onFrame: (frame: Uint8Array) => void): void {
    this.#window.append(chunk);
    for (;;) {
      const shift = this.#window.extend(this.#start);
      if (shift === undefined) break;
      this.#start -= shift;
      this.#walker.moveTo(this.#window.bytes, this.#window.end, shift);
      this.#takeDocuments(onFrame);
    }
    if (this.#inDocument) return;
    // An idle watch may last for hours and should not keep its last chunk.
    this.#window.clear();
    this.#walker.moveTo(this.#window.bytes, 0, 0);
    this.#start = 0;
  }

  #takeDocuments(onFrame: (frame: Uint8Array) => void): void {
    while (this.#inDocument || this.#openDocument()) {
      const isWhole = this.#walker.skip();
      this.#checkSize((isWhole ? this.#walker.valueEnd : this.#window.end) - this.#start);
      if (!isWhole) return;
      const frame = this.#takeFrame(this.#walker.valueEnd);
      this.#inDocument = false;
      onFrame(frame);
    }
  }

  // False if only white space is left.
  #openDocument(): boolean {
    const { bytes, end } = this.#window;
    this.#start = skipSpace(bytes, this.#start, end);
    if (this.#start === end) return false;
    if (bytes[this.#start] !== OPEN_BRACE) throw codecError("CODEC_MALFORMED", "splitting a JSON watch: an object was expected");
    this.#walker.start(bytes, this.#start, end).next();
    this.#inDocument = true;
    return true;
  }

  #takeFrame(end: number): Uint8Array {
    const { bytes } = this.#window;
    const start = this.#start;
    const hasNewline = end < this.#window.end && bytes[end] === NEWLINE;
    this.#start = hasNewline ? end + 1 : end;
    if (hasNewline) return bytes.subarray(start, end + 1);
    return Buffer.concat([bytes.subarray(start, end), Buffer.from([NEWLINE])]);
  }

  #checkSize(size: number): void {
    if (size > this.#maxFrameBytes)
      throw codecError("CODEC_TOO_LARGE", `splitting a JSON watch: an event over ${this.#maxFrameBytes} bytes`);
  }
}
