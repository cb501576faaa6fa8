// The filter for JSON lists and Tables. It copies runs of kept bytes and leaves dropped elements out, with their commas.
// Invariants: nothing is emitted before the array has been found (so a document that is no list never gets out), an element
// only after it has been read to its end, and what is held is bounded by one element.
import { equalsAscii } from "./ascii.ts";
import type { Edit } from "./byte-edit.ts";
import { ByteWindow } from "./byte-window.ts";
import type { ElementFilter, ListFilterOptions } from "./element-filter.ts";
import { cutRemainingItemCount, JsonListHead, type ListKey } from "./json-list-head.ts";
import { JsonListOutput } from "./json-list-output.ts";
import { JsonObjectReader } from "./json-object.ts";
import { OPEN_BRACE, OPEN_BRACKET } from "./json-scan.ts";
import { JsonWalker } from "./json-walker.ts";
import { codecError, DEFAULT_MAX_BYTES, type Emit, type ListPart } from "./types.ts";

export class JsonListFilter {
  readonly #maxItemBytes: number;
  readonly #elements: ElementFilter;
  readonly #window = new ByteWindow();
  readonly #walker = new JsonWalker();
  readonly #output = new JsonListOutput(this.#window);
  readonly #reader: JsonObjectReader;
  readonly #head = new JsonListHead();
  /** Until the array is found everything is held, and cuts are only noted. */
  #inHead = true;
  #cuts: Edit[] = [];
  /** The key whose value is in hand at the list's own level. */
  #key: ListKey | undefined;
  /** What the elements of the array that is walked are. */
  #part: ListPart = "item";
  #isFirstElement = true;
  /** An element is being read; where it begins. */
  #inElement = false;
  #elementStart = 0;

  constructor(elements: ElementFilter, options: ListFilterOptions) {
    this.#maxItemBytes = options.maxItemBytes ?? DEFAULT_MAX_BYTES;
    this.#elements = elements;
    this.#reader = new JsonObjectReader(this.#walker, options);
  }

  push(chunk: Uint8Array, emit: Emit): void {
    if (chunk.length === 0) return;
    this.#window.append(chunk);
    for (;;) {
      const shift = this.#window.extend(this.#output.mark);
      if (shift === undefined) return;
      this.#output.move(shift);
      this.#elementStart -= shift;
      this.#walker.moveTo(this.#window.bytes, this.#window.end, shift);
      while (this.#step(emit)) {}
      this.#bound(this.#walker.position - this.#output.hold);
      this.#output.release(emit);
    }
  }

  end(emit: Emit): void {
    if (!this.#walker.isDone) throw codecError("CODEC_TRUNCATED", "filtering a JSON list: the body ends inside the document");
    this.#output.pass(this.#window.end);
    this.#output.release(emit);
  }

  // One value of the list, or one element. False if it needs more bytes.
  #step(emit: Emit): boolean {
    const walker = this.#walker;
    if (this.#inElement) return this.#reader.read() && this.#closeElement(emit);
    if (this.#key !== undefined) {
      if (!walker.skip()) return false;
      this.#closeValue(this.#key, emit);
    }
    const token = walker.next();
    if (token === "more") {
      if (walker.isDone) this.#output.pass(walker.position);
      return false;
    }
    if (token === "closed") this.#close();
    else if (walker.depth === 2) this.#openElement();
    else if (walker.depth === 1) this.#openValue(emit);
    else if (!walker.enter(OPEN_BRACE)) throw codecError("CODEC_MALFORMED", "filtering a JSON list: an object was expected");
    return true;
  }

  #openValue(emit: Emit): void {
    const walker = this.#walker;
    this.#key = this.#head.classifyKey(walker);
    if (!this.#inHead) this.#output.pass(walker.valueStart);
    const isArray = (this.#key === "items" || this.#key === "rows") && walker.enter(OPEN_BRACKET);
    if (!isArray) return;
    if (this.#inHead) this.#flushHead(emit);
    this.#output.openArray(walker.position);
    this.#part = this.#key === "rows" ? "row" : "item";
    this.#isFirstElement = true;
    this.#key = undefined;
  }

  #closeValue(key: ListKey, emit: Emit): void {
    const { bytes, valueStart, valueEnd } = this.#walker;
    this.#key = undefined;
    this.#bound(valueEnd - valueStart);
    if (key === "items" || key === "rows") {
      if (!equalsAscii(bytes, valueStart, valueEnd, "null")) throw notAList();
      if (this.#inHead) this.#flushHead(emit);
    } else if (key === "metadata") {
      if (!this.#elements.keepsAll) this.#leaveOutCount(emit);
    } else if (key !== "other" && this.#inHead) this.#head.noteType(key, bytes, valueStart);
    if (!this.#inHead) this.#output.pass(valueEnd);
  }

  // In the head nobody knows yet whether something will be dropped: there the count always goes.
  #leaveOutCount(emit: Emit): void {
    const { bytes, valueStart, valueEnd } = this.#walker;
    if (this.#inHead) this.#cuts.push(...cutRemainingItemCount(bytes, valueStart));
    else if (this.#elements.dropped > 0) this.#output.cut(cutRemainingItemCount(bytes, valueStart), valueEnd, emit);
  }

  #openElement(): void {
    const walker = this.#walker;
    if (!this.#isFirstElement) this.#output.comma(walker.commaAt);
    this.#isFirstElement = false;
    this.#inElement = true;
    this.#elementStart = walker.valueStart;
    this.#reader.begin(this.#part);
  }

  #closeElement(emit: Emit): true {
    const { bytes, valueEnd } = this.#walker;
    const { meta } = this.#reader;
    this.#inElement = false;
    this.#bound(valueEnd - this.#elementStart);
    if (!this.#elements.passes(meta)) this.#output.drop(valueEnd, emit);
    else {
      const written = this.#elements.rewritten(bytes, this.#elementStart, valueEnd, meta, this.#part);
      if (written === undefined) this.#output.keep(valueEnd);
      else this.#output.replace(this.#elementStart, valueEnd, written, emit);
    }
    return true;
  }

  // Of the array, or of the whole document.
  #close(): void {
    const walker = this.#walker;
    if (walker.isDone && this.#inHead && !this.#head.isStatus) throw notAList();
    if (walker.isDone) this.#inHead = false;
    this.#output.pass(walker.position);
  }

  #flushHead(emit: Emit): void {
    const { position } = this.#walker;
    this.#bound(position);
    this.#inHead = false;
    this.#output.cut(this.#cuts, position, emit);
    this.#cuts = [];
  }

  #bound(bytes: number): void {
    if (bytes > this.#maxItemBytes)
      throw codecError(
        "CODEC_TOO_LARGE",
        `filtering a JSON list: an item, or what stands around them, over ${this.#maxItemBytes} bytes`,
      );
  }
}

function notAList(): Error {
  return codecError("CODEC_NOT_A_LIST", "filtering a JSON list: the document has no items or rows");
}
