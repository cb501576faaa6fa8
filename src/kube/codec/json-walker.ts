// Walks over JSON text that comes in pieces, one value after the other, on the levels that its user enters; nested values that are
// not entered are skipped. Invariants: it stops at any byte and goes on there when more have come, so no byte is scanned twice;
// the punctuation of the levels walked is checked. Used by the list filter, the frame splitter and, over whole text, by the rest.
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
} from "./json-scan.ts";
import { type KeyMatch, type KeyName, matchKey, textOf } from "./json-string.ts";
import { codecError } from "./types.ts";

/**
 * - `value` the walker stands at a value of the container entered last: `enter` it, or it is skipped
 * - `closed` the container entered last is over; the one around it goes on
 * - `more` the bytes are used up
 */
export type Token = "value" | "closed" | "more";

// value => atValue                     at its first byte
// atValue => first                     entered
// atValue => inValue => after          skipped
// first, after => key | value | after  at a key, an element or the closing bracket
// key => inKey => colon => value
// after => done                        behind the outermost value
type State = "value" | "atValue" | "inValue" | "first" | "key" | "inKey" | "colon" | "after" | "done";

const NO_BYTES = Buffer.alloc(0);
const NO_VIEW = new DataView(new ArrayBuffer(0));

export class JsonWalker {
  bytes: Buffer = NO_BYTES;
  end = 0;
  /** Where it goes on; may lie one behind `end`. */
  position = 0;
  /** The value in hand or, behind it, the last one. */
  valueStart = 0;
  valueEnd = 0;
  /** The key of the value in hand, without its quotes. */
  keyStart = 0;
  keyEnd = 0;
  /** The comma before the value in hand, if it is not the first of its container. */
  commaAt = 0;
  #keyIsPlain = true;
  /** All bytes of the key in hand, joined by "or", and 0x80 for an escape. */
  #keySeen = 0;
  #view: DataView = NO_VIEW;
  #state: State = "value";
  readonly #open = new BracketStack();
  /** How many brackets were open before the value that is skipped. */
  #outer = 0;

  /** Begins anew at the value that starts at or behind `position`. */
  start(bytes: Buffer, position: number, end: number): this {
    this.#open.clear();
    this.#state = "value";
    this.#keySeen = 0;
    this.position = position;
    this.moveTo(bytes, end, 0);
    return this;
  }

  /** Goes on in other bytes, where everything lies `shift` lower. */
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

  /** How many containers have been entered and are not over. */
  get depth(): number {
    return this.#open.depth;
  }

  /** True behind the outermost value. */
  get isDone(): boolean {
    return this.#state === "done";
  }

  /** The first byte of the value in hand. */
  get valueByte(): number {
    return this.bytes[this.valueStart] as number;
  }

  /** Goes to the next value, over the one in hand. */
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
      if (bytes[at] !== QUOTE) throw malformed("a key was expected");
      this.position = this.keyStart = at + 1;
      this.#state = "inKey";
      if (!this.#skipKey()) return "more";
      at = skipSpace(bytes, this.position, end);
      if (at >= end) return this.#wantMore(at);
    }
    if (this.#state === "colon") {
      if (bytes[at] !== COLON) throw malformed("a colon was expected");
      at = skipSpace(bytes, at + 1, end);
      this.#state = "value";
      if (at >= end) return this.#wantMore(at);
    }
    if (this.#state === "done") throw malformed("text behind the document");
    this.position = this.valueStart = at;
    this.#state = "atValue";
    return "value";
  }

  #wantMore(position: number): "more" {
    this.position = position;
    return "more";
  }

  #skipComma(at: number): number {
    if (this.bytes[at] !== COMMA) throw malformed("a comma was expected");
    this.commaAt = at;
    return skipSpace(this.bytes, at + 1, this.end);
  }

  /** Enters the value in hand. False if it does not begin with this bracket. */
  enter(bracket: typeof OPEN_BRACE | typeof OPEN_BRACKET): boolean {
    if (this.#state !== "atValue" || this.valueByte !== bracket) return false;
    this.#open.push(bracket);
    this.position = this.valueStart + 1;
    this.#state = "first";
    return true;
  }

  /** Goes behind the value in hand, or behind the key if it stands in one. False if that lies behind the end. */
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
    let behind: number;
    if (this.#open.depth > this.#outer) {
      behind = this.#open.skipTo(this.#outer, bytes, this.#view, end);
      if (behind < 0) return this.#pause(this.#open.position);
    } else if (this.valueByte === QUOTE) {
      behind = skipString(bytes, this.#view, this.position, end);
      if (behind < 0) return this.#pause(-behind);
    } else {
      // A number or word ends only where another byte is seen.
      behind = skipScalar(bytes, this.position, end);
      if (behind === end) return this.#pause(end);
      if (behind === this.valueStart) throw malformed("a value was expected");
    }
    this.position = this.valueEnd = behind;
    this.#state = this.#open.depth === 0 ? "done" : "after";
    return true;
  }

  // Keys are short: one pass that also sees whether there is anything to decode.
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
    // In ASCII both closing brackets come two behind their opening ones.
    return byte - 2 === this.#open.top;
  }

  /** Compares the key of the value in hand with a name. Escapes are resolved first. */
  matches(name: KeyName): KeyMatch {
    return matchKey(this.bytes, this.keyStart, this.keyEnd, this.#keyIsPlain, name);
  }

  /** The last key, or undefined if readers may disagree on what it says. */
  keyText(): string | undefined {
    return textOf(this.bytes, this.keyStart, this.keyEnd);
  }
}

function malformed(what: string): Error {
  return codecError("CODEC_MALFORMED", `reading JSON: ${what}`);
}
