// Walks over JSON text that arrives in pieces. It visits the values of the containers that its user enters,
// checks their punctuation, and skips all others. It stops at any byte and continues there when more bytes
// arrive: no byte is scanned twice.
import { codecError } from "../base/types.ts";
import {
  BACKSLASH,
  BracketStack,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipScalar,
  skipSpace,
  skipString,
} from "./scan.ts";
import { type KeyMatch, type KeyName, matchKey, textOf } from "./string.ts";

/**
 * - `value` the walker is at a value of the container entered last, and skips it unless `enter` is called
 * - `closed` the container entered last has ended; the walker is in the container around it
 * - `more` the walker needs more bytes
 */
type Token = "value" | "closed" | "more";

// value => atValue                     at its first byte
// atValue => first                     entered
// atValue => inValue => after          skipped
// first, after => key | value | after  at a key, an element or the closing bracket
// key => inKey => colon => value
// after => done                        after the outermost value
type State = "value" | "atValue" | "inValue" | "first" | "key" | "inKey" | "colon" | "after" | "done";

const NO_BYTES = Buffer.alloc(0);
const NO_VIEW = new DataView(new ArrayBuffer(0));

export class JsonWalker {
  bytes: Buffer = NO_BYTES;
  end = 0;
  /** Where the walker continues. May be one after `end`. */
  position = 0;
  /** The current value, or the last one if the walker is after a value. */
  valueStart = 0;
  valueEnd = 0;
  /** The key of the current value, without its quotes. */
  keyStart = 0;
  keyEnd = 0;
  /** The comma before the current value, if the value is not the first of its container. */
  commaAt = 0;
  #keyIsPlain = true;
  /** The bitwise OR of all bytes of the current key, with 0x80 for an escape. */
  #keySeen = 0;
  #view: DataView = NO_VIEW;
  #state: State = "value";
  readonly #open = new BracketStack();
  /** How many brackets were open before the value being skipped. */
  #outer = 0;

  /** Starts again at the value at or after `position`. */
  start(bytes: Buffer, position: number, end: number): this {
    this.#open.clear();
    this.#state = "value";
    this.#keySeen = 0;
    this.position = position;
    this.moveTo(bytes, end, 0);
    return this;
  }

  /** Continues in other bytes, where every position is lower by `shift`. */
  moveTo(bytes: Buffer, end: number, shift: number): void {
    if (bytes !== this.bytes) {
      this.bytes = bytes;
      this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    }
    this.end = end;
    if (shift === 0) return;
    this.position -= shift;
    this.valueStart -= shift;
    this.valueEnd -= shift;
    this.keyStart -= shift;
    this.keyEnd -= shift;
    this.commaAt -= shift;
    this.#open.position -= shift;
  }

  /** The number of containers that are entered and not closed. */
  get depth(): number {
    return this.#open.depth;
  }

  get isDone(): boolean {
    return this.#state === "done";
  }

  get valueByte(): number {
    return this.bytes[this.valueStart] as number;
  }

  /** Moves to the next value. Skips the current one. */
  next(): Token {
    if (!this.skip()) return "more";
    const { bytes, end } = this;
    let at = skipSpace(bytes, this.position, end);
    if (at >= end) return this.#wantMore(at);
    if (this.#state === "first" || this.#state === "after") {
      if (this.#closes(bytes[at] as number)) return this.#leave(at);
      if (this.#state === "after") at = this.#skipComma(at);
      this.#state = this.#open.top === OPEN_BRACE ? "key" : "value";
      if (at >= end) return this.#wantMore(at);
    }
    if (this.#state === "key") {
      if (bytes[at] !== QUOTE) throw malformed("expected a key");
      this.position = this.keyStart = at + 1;
      this.#state = "inKey";
      if (!this.#skipKey()) return "more";
      at = skipSpace(bytes, this.position, end);
      if (at >= end) return this.#wantMore(at);
    }
    if (this.#state === "colon") {
      if (bytes[at] !== COLON) throw malformed("expected a colon");
      at = skipSpace(bytes, at + 1, end);
      this.#state = "value";
      if (at >= end) return this.#wantMore(at);
    }
    if (this.#state === "done") throw malformed("there is text after the document");
    this.position = this.valueStart = at;
    this.#state = "atValue";
    return "value";
  }

  #wantMore(position: number): "more" {
    this.position = position;
    return "more";
  }

  #skipComma(at: number): number {
    if (this.bytes[at] !== COMMA) throw malformed("expected a comma");
    this.commaAt = at;
    return skipSpace(this.bytes, at + 1, this.end);
  }

  /** Enters the current value. False if it does not begin with this bracket. */
  enter(bracket: typeof OPEN_BRACE | typeof OPEN_BRACKET): boolean {
    if (this.#state !== "atValue" || this.valueByte !== bracket) return false;
    this.#open.push(bracket);
    this.position = this.valueStart + 1;
    this.#state = "first";
    return true;
  }

  /** Moves after the current value, or after the current key. False if it needs more bytes. */
  skip(): boolean {
    if (this.#state === "inKey") return this.#skipKey();
    if (this.#state === "atValue") this.#openValue();
    return this.#state !== "inValue" || this.#skipValue();
  }

  #openValue(): void {
    const byte = this.valueByte;
    this.#outer = this.#open.depth;
    this.#state = "inValue";
    this.position = this.valueStart + (byte === QUOTE ? 1 : 0);
    if (byte !== OPEN_BRACE && byte !== OPEN_BRACKET) return;
    this.#open.push(byte);
    this.#open.position = this.position + 1;
  }

  #skipValue(): boolean {
    const { bytes, end } = this;
    let afterValue: number;
    if (this.#open.depth > this.#outer) {
      afterValue = this.#open.skipTo(this.#outer, bytes, this.#view, end);
      if (afterValue < 0) return this.#pause(this.#open.position);
    } else if (this.valueByte === QUOTE) {
      afterValue = skipString(bytes, this.#view, this.position, end);
      if (afterValue < 0) return this.#pause(-afterValue);
    } else {
      // Only the byte after a number or word shows where it ends.
      afterValue = skipScalar(bytes, this.position, end);
      if (afterValue === end) return this.#pause(end);
      if (afterValue === this.valueStart) throw malformed("expected a value");
    }
    this.position = this.valueEnd = afterValue;
    this.#state = this.#open.depth === 0 ? "done" : "after";
    return true;
  }

  // Keys are short. One pass also finds out whether there are escapes to decode.
  #skipKey(): boolean {
    const { bytes, end } = this;
    let at = this.position;
    let seen = this.#keySeen;
    while (at < end) {
      const byte = bytes[at++] as number;
      if (byte === QUOTE) {
        this.position = at;
        this.keyEnd = at - 1;
        this.#keyIsPlain = seen < 0x80;
        this.#keySeen = 0;
        this.#state = "colon";
        return true;
      }
      if (byte === BACKSLASH) {
        seen = 0x80;
        at++;
      }
      seen |= byte;
    }
    this.#keySeen = seen;
    return this.#pause(at);
  }

  #pause(position: number): false {
    this.position = position;
    return false;
  }

  #leave(at: number): "closed" {
    this.position = this.valueEnd = at + 1;
    this.#open.depth--;
    this.#state = this.#open.depth === 0 ? "done" : "after";
    return "closed";
  }

  #closes(byte: number): boolean {
    // In ASCII each closing bracket is its opening bracket plus 2.
    return byte - 2 === this.#open.top;
  }

  matches(name: KeyName): KeyMatch {
    return matchKey(this.bytes, this.keyStart, this.keyEnd, this.#keyIsPlain, name);
  }

  keyText(): string | undefined {
    return textOf(this.bytes, this.keyStart, this.keyEnd);
  }
}

function malformed(what: string): Error {
  return codecError("CODEC_MALFORMED", `reading JSON: ${what}`);
}
