// The hot loops over JSON text: white space, strings and whole nested values. For valid JSON every end found
// here is the end that any JSON parser finds. Brackets must match by kind, and punctuation must follow a
// string, so that a lost quote or bracket is an error.
import { codecError } from "../base/types.ts";

export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
export const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
export const NEWLINE = 0x0a;

const MAX_DEPTH = 10_000; // the limit of encoding/json

// 1 for the bytes that may follow a string: white space and , : } ]
const AFTER_STRING = new Uint8Array(256);
for (const byte of [0x20, 0x09, 0x0a, 0x0d, COMMA, COLON, CLOSE_BRACE, CLOSE_BRACKET]) AFTER_STRING[byte] = 1;

export function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** The first position at or after `position` that is not white space, or `end`. */
export function skipSpace(bytes: Uint8Array, position: number, end: number): number {
  let at = position;
  while (at < end && isSpace(bytes[at] as number)) at++;
  return at;
}

/** The first position at or after `position` that is not part of a number or word, or `end`. */
export function skipScalar(bytes: Uint8Array, position: number, end: number): number {
  let at = position;
  while (at < end && isScalarByte(bytes[at] as number)) at++;
  return at;
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

/**
 * Skips a string whose opening quote is before `position`.
 * @returns the position after the closing quote. If there is none before `end`: the negative position to
 * continue from, which may be one after `end`, and is never 0, since a quote is before it.
 */
export function skipString(bytes: Buffer, view: DataView, position: number, end: number): number {
  let at = position;
  for (const last = end - 8; at <= last; ) {
    let found = specials(view.getInt32(at, true));
    if (found === 0) {
      at += 4;
      found = specials(view.getInt32(at, true));
      if (found === 0) {
        at += 4;
        continue;
      }
    }
    at += (31 - Math.clz32(found & -found)) >> 3;
    if (bytes[at] === QUOTE) return at + 1;
    at += 2;
  }
  while (at < end) {
    const byte = bytes[at++] as number;
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at++;
  }
  return -at;
}

// Checks four bytes together. The lowest bit set is in the first byte that is a quote or backslash. A byte is
// zero exactly if subtracting 1 sets its high bit and the bit was not set before; a borrow can only set bits
// above the first zero.
function specials(word: number): number {
  const quotes = word ^ 0x22222222;
  const slashes = word ^ 0x5c5c5c5c;
  return (((quotes - 0x01010101) & ~quotes) | ((slashes - 0x01010101) & ~slashes)) & 0x80808080;
}

/** The open brackets, outermost first, and the scan over the content of the innermost. */
export class BracketStack {
  depth = 0;
  /** Where `skipTo` stopped at the end of the bytes: one after it if an escape lacks its second byte. */
  position = 0;
  #inString = false;
  #brackets = new Uint8Array(32);

  clear(): void {
    this.depth = 0;
    this.#inString = false;
  }

  push(bracket: number): void {
    if (this.depth === this.#brackets.length) this.#grow();
    this.#brackets[this.depth++] = bracket;
  }

  /** The innermost open bracket; undefined where none is open. */
  get top(): number | undefined {
    return this.#brackets[this.depth - 1];
  }

  /** Returns the position where only `outer` brackets are open, or -1 if there is none before `end`. */
  skipTo(outer: number, bytes: Buffer, view: DataView, end: number): number {
    let at = this.position;
    let { depth } = this;
    let brackets = this.#brackets;
    if (this.#inString) {
      at = skipString(bytes, view, at, end);
      if (at < 0) return this.#pause(-at, depth, true);
    }
    if (at < end && bytes[at - 1] === QUOTE && AFTER_STRING[bytes[at] as number] === 0) throw textAfterString();
    while (at < end) {
      const byte = bytes[at++] as number;
      if (byte === QUOTE) {
        at = skipString(bytes, view, at, end);
        if (at < 0) return this.#pause(-at, depth, true);
        if (at < end && AFTER_STRING[bytes[at] as number] === 0) throw textAfterString();
      } else if ((byte & 0xdf) === OPEN_BRACKET) {
        if (depth === brackets.length) brackets = this.#grow();
        brackets[depth++] = byte;
      } else if ((byte & 0xdf) === CLOSE_BRACKET) {
        // In ASCII each closing bracket is its opening bracket plus 2.
        if (brackets[--depth] !== byte - 2) throw codecError("CODEC_MALFORMED", "reading JSON: brackets do not match");
        if (depth === outer) {
          this.#pause(at, depth, false);
          return at;
        }
      }
    }
    return this.#pause(at, depth, false);
  }

  #pause(position: number, depth: number, inString: boolean): -1 {
    this.position = position;
    this.depth = depth;
    this.#inString = inString;
    return -1;
  }

  #grow(): Uint8Array<ArrayBuffer> {
    if (this.#brackets.length >= MAX_DEPTH)
      throw codecError("CODEC_MALFORMED", `reading JSON: nested deeper than ${MAX_DEPTH} levels`);
    const grown = new Uint8Array(Math.min(this.#brackets.length * 8, MAX_DEPTH));
    grown.set(this.#brackets);
    this.#brackets = grown;
    return grown;
  }
}

// Without this check a lost quote would swap strings and structure: text would be read as objects.
function textAfterString(): Error {
  return codecError("CODEC_MALFORMED", "reading JSON: text follows a string");
}
