// Estimates the memory that JSON text from outside takes when it is parsed, in one pass over the bytes as
// they arrive. Invariants: the estimate is never below what JSON.parse retains; the pass stops at the first
// bound that the text exceeds; no value costs an allocation.
import { COLON, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE, skipString } from "./json/scan.ts";

export interface JsonBounds {
  /** Brackets that are open at the same time. */
  readonly depth: number;
  /** Values, of all depths. */
  readonly values: number;
  /** Names of members. */
  readonly names: number;
  /** Bytes of one string, with its escapes. */
  readonly stringBytes: number;
}

// Bytes on the heap, measured with the worst text of each kind (json-cost.test.ts), in Node 24.
/** 8 for a place in an array, and at most 32 for the value: the header and the padding of a string. */
const VALUE_BYTES = 40;
/** An array or object, with its place, its list of elements, and its first value (after no comma). */
const CONTAINER_BYTES = 72;
/** A string, and either an entry of a dictionary that has just grown, or a hidden class. */
const NAME_BYTES = 160;
/** One character beyond Latin-1 gives all characters of a string two bytes. */
const TEXT_FACTOR = 2;

// In ASCII each closing bracket is its opening bracket plus 2.
const CLOSE_BRACKET = OPEN_BRACKET + 2;
const CLOSE_BRACE = OPEN_BRACE + 2;
/** Without this bit, braces are brackets. */
const BRACKET_MASK = 0xdf;

export class JsonCost {
  readonly #bounds: JsonBounds;
  #position = 0;
  #inString = false;
  #depth = 0;
  #containers = 0;
  #commas = 0;
  #names = 0;
  /** Where the string at the position begins. */
  #stringStart = 0;
  /** What exceeds a bound, as the end of a sentence: "a review has ...". Undefined if nothing does so far. */
  excess: string | undefined;

  constructor(bounds: JsonBounds) {
    this.#bounds = bounds;
  }

  /** Upper bound of the heap bytes that the scanned part takes when it is parsed. */
  get parsedBytes(): number {
    const structure = this.#commas * VALUE_BYTES + this.#containers * CONTAINER_BYTES + this.#names * NAME_BYTES;
    return this.#position * TEXT_FACTOR + structure;
  }

  /** Continues at the byte where it stopped. `bytes` begins with all bytes that were scanned before. */
  scan(bytes: Buffer): void {
    if (this.excess !== undefined) return;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const end = bytes.length;
    let at = this.#position;
    while (at < end) {
      if (this.#inString) {
        const next = skipString(bytes, view, at, end);
        this.#inString = next < 0;
        at = Math.abs(next);
        const { stringBytes } = this.#bounds;
        const length = at - this.#stringStart - (this.#inString ? 0 : 1);
        if (length > stringBytes) this.excess = `a string of more than ${stringBytes} bytes`;
      }
      at = skipPlain(bytes, at, end);
      if (at < end) {
        this.#count(bytes[at++] as number);
        if (this.#inString) this.#stringStart = at;
      }
      if (this.excess !== undefined) break;
    }
    this.#position = at;
  }

  #count(byte: number): void {
    const { depth, values, names } = this.#bounds;
    if (byte === QUOTE) this.#inString = true;
    else if (byte === COMMA) this.#commas++;
    else if (byte === COLON) this.#names++;
    else if ((byte & BRACKET_MASK) === CLOSE_BRACKET) this.#depth--;
    else {
      this.#depth++;
      this.#containers++;
    }
    // Each value but the first follows a comma or an opening bracket.
    if (this.#commas + this.#containers >= values) this.excess = `more than ${values} values`;
    else if (this.#names > names) this.excess = `more than ${names} names of members`;
    else if (this.#depth > depth) this.excess = `more than ${depth} levels`;
  }
}

// 1 for the bytes that #count takes.
const COUNTED = new Uint8Array(256);
for (const byte of [QUOTE, COMMA, COLON, OPEN_BRACKET, OPEN_BRACE, CLOSE_BRACKET, CLOSE_BRACE]) COUNTED[byte] = 1;

function skipPlain(bytes: Buffer, position: number, end: number): number {
  let at = position;
  while (at < end && COUNTED[bytes[at] as number] === 0) at++;
  return at;
}
