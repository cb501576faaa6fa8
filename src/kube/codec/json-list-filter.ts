// The filter for JSON lists and Tables. It copies runs of kept bytes and leaves dropped elements out, with their commas.
// Invariants: nothing is emitted before the array has been found (so a document that is no list never gets out), an element
// only after it has been read to its end, and what is held is bounded by one element.
//
// Positions in the window: [mark, hold) goes to the client, [hold, position) is read but not decided, the rest is unread.
import { ByteWindow } from "./byte-window.ts";
import { JsonCursor, NEED_MORE } from "./json-cursor.ts";
import type { Edit } from "./json-edit.ts";
import { cutRemainingItemCount, JsonListHead, type ListKey } from "./json-list-head.ts";
import { JsonObjectReader } from "./json-object.ts";
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
  ValueSkipper,
} from "./json-scan.ts";
import { type ByteFilter, codecError, DEFAULT_MAX_BYTES, type Emit, type Keep, type Rewrite } from "./types.ts";

// document => firstKey                    at the opening brace
// firstKey, key => colon => value         a key, its colon
// value => inValue => afterValue          any value that is not the array of items or rows
// value => firstElement                   at that array's opening bracket
// firstElement, element => afterElement   an element read to its end, through inElement if it goes on in the next chunk
// afterElement => element | afterValue    at a comma; at the closing bracket
// afterValue => key | done                at a comma; at the closing brace
type State =
  | "document"
  | "firstKey"
  | "key"
  | "colon"
  | "value"
  | "inValue"
  | "afterValue"
  | "firstElement"
  | "element"
  | "inElement"
  | "afterElement"
  | "done";

// Keys and numbers are read again from their beginning when they go on in the next chunk, so they have a bound of their own.
const MAX_TOKEN_BYTES = 64 * 1024;

export interface JsonListFilterOptions {
  readonly maxItemBytes?: number | undefined;
  readonly rewrite?: Rewrite | undefined;
}

export class JsonListFilter implements ByteFilter {
  dropped = 0;
  kept = 0;
  readonly #keep: Keep;
  readonly #maxItemBytes: number;
  readonly #rewrite: Rewrite | undefined;
  readonly #window = new ByteWindow();
  readonly #cursor = new JsonCursor();
  readonly #reader = new JsonObjectReader();
  readonly #skipper = new ValueSkipper();
  readonly #head = new JsonListHead();
  #state: State = "document";
  #mark = 0;
  #hold = 0;
  #position = 0;
  #valueStart = 0;
  #key: ListKey = "other";
  /** Until the array is found everything is held, and cuts are only noted. */
  #inHead = true;
  #cuts: Edit[] = [];
  #anyKeptInArray = false;
  #lastDropped = false;

  constructor(keep: Keep, options: JsonListFilterOptions = {}) {
    this.#keep = keep;
    this.#maxItemBytes = options.maxItemBytes ?? DEFAULT_MAX_BYTES;
    this.#rewrite = options.rewrite;
  }

  push(chunk: Uint8Array, emit: Emit): void {
    if (chunk.length === 0) return;
    const shift = this.#window.append(chunk, this.#mark);
    this.#mark -= shift;
    this.#hold -= shift;
    this.#position -= shift;
    this.#valueStart -= shift;
    this.#skipper.position -= shift;
    while (this.#step(emit)) {}
    if (this.#inHead) this.#bound(this.#position, "what stands before the items");
    this.#release(emit, this.#hold);
  }

  end(emit: Emit): void {
    if (this.#state !== "done") throw codecError("CODEC_TRUNCATED", "filtering a JSON list: the body ends inside the document");
    this.#release(emit, this.#window.end);
  }

  // One transition. False if it needs more bytes.
  #step(emit: Emit): boolean {
    if (this.#state === "inValue") return this.#skipOn() && this.#closeValue(emit);
    if (this.#state === "inElement") return this.#skipOn() && this.#readElement(emit, this.#position);
    const { bytes, end } = this.#window;
    this.#position = skipSpace(bytes, this.#position, end);
    this.#advanceHold();
    if (this.#position === end) return false;
    const byte = bytes[this.#position] as number;
    switch (this.#state) {
      case "document":
        return this.#expect(byte, OPEN_BRACE, "firstKey");
      case "firstKey":
        return byte === CLOSE_BRACE ? this.#closeDocument() : this.#readKey(byte);
      case "key":
        return this.#readKey(byte);
      case "colon":
        return this.#expect(byte, COLON, "value");
      case "value":
        return this.#openValue(byte, emit);
      case "afterValue":
        return byte === CLOSE_BRACE ? this.#closeDocument() : this.#expect(byte, COMMA, "key");
      case "firstElement":
        return byte === CLOSE_BRACKET ? this.#closeArray() : this.#openElement(emit);
      case "element":
        return this.#openElement(emit);
      case "afterElement":
        return byte === CLOSE_BRACKET ? this.#closeArray() : this.#readComma(byte);
      case "done":
        throw codecError("CODEC_MALFORMED", "filtering a JSON list: text behind the document");
      default:
        return this.#state satisfies never;
    }
  }

  // What has been read may go, except in the head and where a comma waits for the element behind it.
  #advanceHold(): void {
    if (this.#inHead || this.#state === "firstElement" || this.#state === "element") return;
    this.#hold = this.#position;
    if (this.#state === "afterElement" && this.#lastDropped) this.#mark = this.#position;
  }

  #expect(byte: number, wanted: number, next: State): true {
    if (byte !== wanted)
      throw codecError("CODEC_MALFORMED", `filtering a JSON list: "${String.fromCharCode(wanted)}" was expected`);
    this.#position++;
    this.#state = next;
    return true;
  }

  #readKey(byte: number): boolean {
    if (byte !== QUOTE) throw codecError("CODEC_MALFORMED", "filtering a JSON list: a key was expected");
    const cursor = this.#cursor.reset(this.#window.bytes, this.#position, this.#window.end);
    if (!completes(() => cursor.readString())) {
      this.#bound(this.#window.end - this.#position, "a key", MAX_TOKEN_BYTES);
      return false;
    }
    this.#key = this.#head.classifyKey(cursor);
    this.#position = cursor.position;
    this.#state = "colon";
    return true;
  }

  #openValue(byte: number, emit: Emit): true {
    if (byte === OPEN_BRACKET && (this.#key === "items" || this.#key === "rows")) return this.#openArray(emit);
    this.#valueStart = this.#position;
    this.#skipper.start(this.#position);
    this.#state = "inValue";
    return true;
  }

  // Goes on with the value at `valueStart`. True once `position` is behind it.
  #skipOn(): boolean {
    const { bytes, end } = this.#window;
    const first = bytes[this.#valueStart];
    let behind = -1;
    if (first === OPEN_BRACE || first === OPEN_BRACKET || first === QUOTE) behind = this.#skipper.run(bytes, end);
    else {
      const cursor = this.#cursor.reset(bytes, this.#valueStart, end);
      if (completes(() => cursor.skipValue())) behind = cursor.position;
      else this.#bound(end - this.#valueStart, "a number", MAX_TOKEN_BYTES);
    }
    this.#position = behind < 0 ? end : behind;
    this.#bound(this.#position - this.#valueStart, "a value");
    return behind >= 0;
  }

  #closeValue(emit: Emit): true {
    const { bytes } = this.#window;
    const start = this.#valueStart;
    const end = this.#position;
    if (this.#key === "items" || this.#key === "rows") {
      if (bytes.toString("latin1", start, end) !== "null") throw notAList();
      if (this.#inHead) this.#flushHead(emit);
    } else if (this.#key === "metadata") {
      if (this.#inHead) this.#cuts.push(...cutRemainingItemCount(bytes, start, end));
      else if (this.dropped > 0) this.#cutOut(cutRemainingItemCount(bytes, start, end), emit);
    } else if (this.#key !== "other" && this.#inHead) this.#head.noteType(this.#key, bytes, start, end);
    this.#state = "afterValue";
    return true;
  }

  #openArray(emit: Emit): true {
    if (this.#inHead) this.#flushHead(emit);
    this.#position++;
    this.#hold = this.#position;
    this.#anyKeptInArray = false;
    this.#lastDropped = false;
    this.#state = "firstElement";
    return true;
  }

  // Most elements lie whole in the chunk and are read in one pass; the others are skipped to their end first.
  #openElement(emit: Emit): true {
    this.#valueStart = this.#position;
    if (!this.#readElement(emit, this.#window.end)) {
      this.#skipper.start(this.#valueStart);
      this.#state = "inElement";
    }
    return true;
  }

  #readElement(emit: Emit, limit: number): boolean {
    const reader = this.#reader;
    const { cursor } = reader;
    cursor.reset(this.#window.bytes, this.#valueStart, limit);
    try {
      if (this.#key === "rows") reader.readRow();
      else reader.readObject();
    } catch (thrown) {
      if (thrown !== NEED_MORE) throw thrown;
      // Only a number or word at the end of its text, which is no object, still wants more once the element is complete.
      if (this.#state !== "inElement") return false;
      reader.readable = false;
      cursor.position = limit;
    }
    this.#position = cursor.position;
    this.#bound(this.#position - this.#valueStart, "an item");
    this.#decide(emit);
    this.#state = "afterElement";
    return true;
  }

  #decide(emit: Emit): void {
    const { readable, namespace, name } = this.#reader;
    this.#lastDropped = !(readable && this.#keep({ namespace, name }));
    if (this.#lastDropped) {
      this.dropped++;
      this.#release(emit, this.#hold);
      this.#mark = this.#position;
    } else {
      this.kept++;
      this.#anyKeptInArray = true;
      if (this.#rewrite !== undefined) this.#writeElement(this.#rewrite, emit);
    }
    this.#hold = this.#position;
  }

  #writeElement(rewrite: Rewrite, emit: Emit): void {
    const { namespace, name } = this.#reader;
    const element = this.#window.bytes.subarray(this.#valueStart, this.#position);
    const written = rewrite(element, { namespace, name }, this.#key === "rows" ? "row" : "item");
    if (written === element) return;
    this.#release(emit, this.#valueStart);
    emit(written);
    this.#mark = this.#position;
  }

  // The comma goes with the element behind it, unless nothing has been kept before.
  #readComma(byte: number): true {
    this.#expect(byte, COMMA, "element");
    if (!this.#anyKeptInArray) this.#mark = this.#hold = this.#position;
    return true;
  }

  #closeArray(): true {
    this.#position++;
    this.#hold = this.#position;
    this.#state = "afterValue";
    return true;
  }

  #closeDocument(): true {
    if (this.#inHead && !this.#head.isStatus) throw notAList();
    this.#inHead = false;
    this.#position++;
    this.#hold = this.#position;
    this.#state = "done";
    return true;
  }

  #flushHead(emit: Emit): void {
    this.#bound(this.#position, "what stands before the items");
    this.#inHead = false;
    this.#cutOut(this.#cuts, emit);
    this.#cuts = [];
  }

  #cutOut(cuts: readonly Edit[], emit: Emit): void {
    for (const cut of cuts) {
      this.#release(emit, cut.start);
      this.#mark = cut.end;
    }
    this.#hold = this.#position;
  }

  #release(emit: Emit, upTo: number): void {
    if (upTo <= this.#mark) return;
    emit(this.#window.bytes.subarray(this.#mark, upTo));
    this.#mark = upTo;
  }

  #bound(bytes: number, what: string, max = this.#maxItemBytes): void {
    if (bytes > max) throw codecError("CODEC_TOO_LARGE", `filtering a JSON list: ${what} over ${max} bytes`);
  }
}

// Runs a reading step. False if it ran out of bytes.
function completes(read: () => void): boolean {
  try {
    read();
    return true;
  } catch (thrown) {
    if (thrown === NEED_MORE) return false;
    throw thrown;
  }
}

function notAList(): Error {
  return codecError("CODEC_NOT_A_LIST", "filtering a JSON list: the document has no items or rows");
}
