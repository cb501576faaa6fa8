// The filter for JSON lists and Tables. It leaves out dropped elements with their commas. Invariants: it
// emits nothing before it has found the array, so a document that is not a list is never emitted; it emits an
// element only after it has read the whole element, and holds at most one.
import { parseResourceVersion } from "../../resource-version.ts";
import { ByteWindow } from "../base/byte-window.ts";
import { type Edit, equalsAscii } from "../base/bytes.ts";
import { ElementFilter, FailOnceFilter, type ListFilterOptions } from "../base/element-filter.ts";
import {
  type ByteFilter,
  codecError,
  DEFAULT_MAX_BYTES,
  type Emit,
  type Keep,
  type ListFilter,
  type ListPart,
} from "../base/types.ts";
import { cutListMeta, JsonListHead, type ListKey, REMAINING_ITEM_COUNT, RESOURCE_VERSION, SHARD_INFO } from "./list-head.ts";
import { JsonListOutput } from "./list-output.ts";
import { JsonObjectReader } from "./object.ts";
import { OPEN_BRACE, OPEN_BRACKET } from "./scan.ts";
import type { KeyName } from "./string.ts";
import { readText, textIn, walkerAt } from "./text.ts";
import { JsonWalker } from "./walker.ts";

export function createListFilter(keep: Keep, options: ListFilterOptions): ListFilter {
  const elements = new ElementFilter(keep, options);
  return new FailOnceFilter(elements, new JsonListFilter(elements, options));
}

class JsonListFilter implements ByteFilter {
  readonly #options: ListFilterOptions;
  readonly #maxItemBytes: number;
  readonly #elements: ElementFilter;
  readonly #window = new ByteWindow();
  readonly #walker = new JsonWalker();
  readonly #output = new JsonListOutput(this.#window);
  readonly #reader: JsonObjectReader;
  readonly #head = new JsonListHead();
  /** True before the array. Those bytes are held, and the cuts in them are collected. */
  #inHead = true;
  #cuts: Edit[] = [];
  /** The key of the list whose value the walker reads. */
  #key: ListKey | undefined;
  #part: ListPart = "item";
  #isFirstElement = true;
  #inElement = false;
  #elementStart = 0;
  #hasVersion = false;

  constructor(elements: ElementFilter, options: ListFilterOptions) {
    this.#options = options;
    this.#maxItemBytes = options.maxItemBytes ?? DEFAULT_MAX_BYTES;
    this.#elements = elements;
    this.#reader = new JsonObjectReader(this.#walker, options);
  }

  get heldBytes(): number {
    return this.#window.heldBytes;
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
      this.#checkSize(this.#walker.position - this.#output.hold);
      this.#output.release(emit);
    }
  }

  end(emit: Emit): void {
    if (!this.#walker.isDone) throw codecError("CODEC_TRUNCATED", "filtering a JSON list: the body ends inside the document");
    if (!this.#hasVersion && !this.#head.isStatus) this.#options.onVersion?.(undefined);
    this.#output.pass(this.#window.end);
    this.#output.release(emit);
  }

  // Reads one value of the list, or one element. False if it needs more bytes.
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
    if (token === "closed") this.#close(emit);
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
    this.#tellPart("items", emit);
    this.#part = this.#key === "rows" ? "row" : "item";
    this.#isFirstElement = true;
    this.#key = undefined;
  }

  #closeValue(key: ListKey, emit: Emit): void {
    const { bytes, valueStart, valueEnd } = this.#walker;
    this.#key = undefined;
    this.#checkSize(valueEnd - valueStart);
    if (key === "items" || key === "rows") {
      if (!equalsAscii(bytes, valueStart, valueEnd, "null")) throw notAList();
      if (this.#inHead) this.#flushHead(emit, valueStart);
      if (this.#options.onPart !== undefined) this.#replaceNull(emit);
    } else if (key === "metadata") {
      this.#readVersion();
      this.#leaveOutFields(emit);
    } else if (key !== "other") this.#readType(key);
    if (!this.#inHead) this.#output.pass(valueEnd);
  }

  #readType(key: "kind" | "apiVersion"): void {
    const { bytes, valueStart } = this.#walker;
    const text = readText(walkerAt(bytes, valueStart)) ?? "";
    if (this.#inHead) this.#head.noteType(key, text);
    this.#options.onType?.({ [key]: text });
  }

  #readVersion(): void {
    const { onVersion } = this.#options;
    if (onVersion === undefined || this.#hasVersion) return;
    const { bytes, valueStart } = this.#walker;
    const version = textIn(bytes, valueStart, RESOURCE_VERSION);
    if (version === undefined) return;
    this.#hasVersion = true;
    onVersion(parseResourceVersion(version));
  }

  // Before the array it is unknown whether elements will be dropped, so the count is always left out.
  #leaveOutFields(emit: Emit): void {
    const { bytes, valueStart, valueEnd } = this.#walker;
    const { keepsAll, dropped } = this.#elements;
    const leftOut: KeyName[] = [];
    if (!keepsAll && (this.#inHead || dropped > 0)) leftOut.push(REMAINING_ITEM_COUNT);
    if (this.#options.cutShardInfo === true) leftOut.push(SHARD_INFO);
    if (leftOut.length === 0) return;
    const cuts = cutListMeta(bytes, valueStart, leftOut);
    if (this.#inHead) this.#cuts.push(...cuts);
    else this.#output.cut(cuts, valueEnd, emit);
  }

  #openElement(): void {
    const walker = this.#walker;
    if (!this.#isFirstElement) this.#output.dropFirstComma(walker.commaAt);
    this.#isFirstElement = false;
    this.#inElement = true;
    this.#elementStart = walker.valueStart;
    this.#reader.begin(this.#part);
  }

  #closeElement(emit: Emit): true {
    const { bytes, valueEnd } = this.#walker;
    const { meta } = this.#reader;
    this.#inElement = false;
    this.#checkSize(valueEnd - this.#elementStart);
    if (!this.#elements.admit(meta)) {
      this.#output.drop(valueEnd, emit);
      return true;
    }
    const written = this.#elements.rewritten(bytes, this.#elementStart, valueEnd, meta, this.#part);
    if (written === undefined) this.#output.keep(valueEnd);
    else this.#output.replace(this.#elementStart, valueEnd, written, emit);
    return true;
  }

  #close(emit: Emit): void {
    const { isDone, position } = this.#walker;
    if (!isDone) this.#tellPart("tail", emit);
    else if (this.#inHead && !this.#head.isStatus) throw notAList();
    else this.#inHead = false;
    this.#output.pass(position);
  }

  #tellPart(part: "items" | "tail", emit: Emit): void {
    if (this.#options.onPart === undefined) return;
    this.#output.release(emit);
    this.#options.onPart(part);
  }

  // The API server writes null for an empty list of metadata.
  #replaceNull(emit: Emit): void {
    const { valueStart, valueEnd } = this.#walker;
    this.#output.replace(valueStart, valueEnd, EMPTY_ARRAY.subarray(0, 1), emit);
    this.#options.onPart?.("items");
    this.#options.onPart?.("tail");
    emit(EMPTY_ARRAY.subarray(1));
  }

  #flushHead(emit: Emit, position = this.#walker.position): void {
    this.#checkSize(position);
    this.#inHead = false;
    this.#output.cut(this.#cuts, position, emit);
    this.#cuts = [];
  }

  #checkSize(bytes: number): void {
    if (bytes > this.#maxItemBytes)
      throw codecError(
        "CODEC_TOO_LARGE",
        `filtering a JSON list: an item, or the list without its items, is over ${this.#maxItemBytes} bytes`,
      );
  }
}

const EMPTY_ARRAY = Buffer.from("[]");

function notAList(): Error {
  return codecError("CODEC_NOT_A_LIST", "filtering a JSON list: the document has no items or rows");
}
