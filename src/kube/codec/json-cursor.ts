// A cursor over JSON text that lies whole, or nearly so, in one buffer. Invariant: it walks only the levels it is asked to
// and checks their punctuation; nested values are skipped. When the text ends too early it throws the constant
// NEED_MORE, cheap enough to be thrown once a chunk. Used by the object readers of this folder.
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
  skipString,
  ValueSkipper,
} from "./json-scan.ts";
import { codecError } from "./types.ts";

/** Thrown when a value goes on behind the end of the bytes. Not an Error: it carries no stack and never leaves this folder. */
export const NEED_MORE: unique symbol = Symbol("need more bytes");

/** How a key compares with a name that matters. `variant` = equal only to a reader that ignores case. */
export type KeyMatch = "no" | "exact" | "variant";

/** A key that the codec looks for, with its bytes. */
export interface KeyName {
  readonly text: string;
  readonly bytes: Uint8Array;
}

/** Makes a KeyName from lower-case or camel-case ASCII. */
export function keyName(text: string): KeyName {
  return { text, bytes: new TextEncoder().encode(text) };
}

export class JsonCursor {
  bytes: Buffer = Buffer.alloc(0);
  end = 0;
  position = 0;
  /** The last string read, by `nextMember` a key: its first byte behind the quote, and its closing quote. */
  stringStart = 0;
  stringEnd = 0;
  #plain = true;
  readonly #skipper = new ValueSkipper();

  /** Points the cursor at the text in `bytes` from `position` to `end`. */
  reset(bytes: Buffer, position: number, end: number): this {
    this.bytes = bytes;
    this.position = position;
    this.end = end;
    return this;
  }

  /** Skips white space; the byte that follows, not consumed. */
  peek(): number {
    this.position = skipSpace(this.bytes, this.position, this.end);
    if (this.position >= this.end) throw NEED_MORE;
    return this.bytes[this.position] as number;
  }

  /** Enters the object or array that begins here. False if another value stands here. */
  enter(open: typeof OPEN_BRACE | typeof OPEN_BRACKET): boolean {
    if (this.peek() !== open) return false;
    this.position++;
    return true;
  }

  /** Goes to the next member's value; the key is then in `stringStart`, `stringEnd`. False behind the closing brace. */
  nextMember(first: boolean): boolean {
    if (!this.#next(first, CLOSE_BRACE)) return false;
    if (this.peek() !== QUOTE) throw malformed("a key was expected");
    this.readString();
    if (this.peek() !== COLON) throw malformed("a colon was expected");
    this.position++;
    this.peek();
    return true;
  }

  /** Goes to the next element of an array. False behind the closing bracket. */
  nextElement(first: boolean): boolean {
    if (!this.#next(first, CLOSE_BRACKET)) return false;
    this.peek();
    return true;
  }

  #next(first: boolean, close: number): boolean {
    const byte = this.peek();
    if (byte === close) {
      this.position++;
      return false;
    }
    if (first) return true;
    if (byte !== COMMA) throw malformed("a comma was expected");
    this.position++;
    return true;
  }

  /** Reads the string that begins here. */
  readString(): void {
    const { bytes, end } = this;
    const start = this.position + 1;
    let at = start;
    let seen = 0;
    while (at < end) {
      const byte = bytes[at] as number;
      if (byte === QUOTE) {
        this.stringStart = start;
        this.stringEnd = at;
        this.#plain = seen < 0x80;
        this.position = at + 1;
        return;
      }
      if (byte === 0x5c) {
        seen = 0x80;
        at++;
      }
      seen |= byte;
      at++;
    }
    throw NEED_MORE;
  }

  /** Skips the value that begins here, of any kind. */
  skipValue(): void {
    const byte = this.peek();
    let behind: number;
    if (byte === QUOTE) behind = skipString(this.bytes, this.position + 1, this.end);
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      this.#skipper.start(this.position);
      behind = this.#skipper.run(this.bytes, this.end);
    } else behind = this.#scalarEnd();
    if (behind < 0) throw NEED_MORE;
    this.position = behind;
  }

  // A number or word ends only where another byte is seen.
  #scalarEnd(): number {
    const { bytes, end } = this;
    let at = this.position;
    while (at < end && isScalarByte(bytes[at] as number)) at++;
    if (at === this.position) throw malformed("a value was expected");
    return at === end ? -1 : at;
  }

  /** Compares the last string with a name. Escapes are resolved first. */
  matches(name: KeyName): KeyMatch {
    const { bytes, stringStart: start } = this;
    const length = this.stringEnd - start;
    if (!this.#plain) return matchDecoded(this.#decode(), name.text);
    if (length !== name.bytes.length) return "no";
    let exact = true;
    for (let index = 0; index < length; index++) {
      const byte = bytes[start + index] as number;
      const wanted = name.bytes[index] as number;
      if (byte === wanted) continue;
      if ((byte ^ wanted) !== 0x20) return "no";
      exact = false;
    }
    return exact ? "exact" : "variant";
  }

  /** The last string decoded, or undefined if readers may disagree on what it says (bad escapes, bad UTF-8). */
  stringText(): string | undefined {
    if (this.#plain) return this.bytes.toString("latin1", this.stringStart, this.stringEnd);
    const text = this.#decode();
    return text?.isWellFormed() && !text.includes("\ufffd") ? text : undefined;
  }

  #decode(): string | undefined {
    try {
      const text: unknown = JSON.parse(this.bytes.toString("utf8", this.stringStart - 1, this.stringEnd + 1));
      return typeof text === "string" ? text : undefined;
    } catch {
      return undefined;
    }
  }

  /** True if the last string has neither escapes nor bytes outside ASCII. */
  get stringIsPlain(): boolean {
    return this.#plain;
  }
}

// A key that cannot be read might be any key to a lenient reader.
function matchDecoded(text: string | undefined, name: string): KeyMatch {
  if (text === name) return "exact";
  if (text === undefined || fold(text) === fold(name)) return "variant";
  return "no";
}

// Through upper case first, as long s and the Kelvin sign fold to s and k in encoding/json.
function fold(text: string): string {
  return text.toUpperCase().toLowerCase();
}

function isScalarByte(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a) ||
    byte === 0x2d ||
    byte === 0x2b ||
    byte === 0x2e
  );
}

function malformed(what: string): Error {
  return codecError("CODEC_MALFORMED", `reading JSON: ${what}`);
}
