// The hot loops over JSON text. Invariant: for valid JSON every end found here is the one that any JSON parser finds;
// brackets are matched by kind and a string must be followed by punctuation, so that a lost quote or bracket is noticed and
// not read past. Used by JsonCursor, the JSON list filter and the frame splitter.
import { codecError } from "./types.ts";

export const QUOTE = 0x22;
const BACKSLASH = 0x5c;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;
export const NEWLINE = 0x0a;

const MAX_DEPTH = 10_000; // encoding/json's own bound
const LONG_STRING = 1024; // from here on indexOf is worth its call

// 1 for the bytes that may follow a string: white space and , : } ]
const AFTER_STRING = new Uint8Array(256);
for (const byte of [0x20, 0x09, 0x0a, 0x0d, COMMA, COLON, CLOSE_BRACE, CLOSE_BRACKET]) AFTER_STRING[byte] = 1;

/** True for the four white-space bytes of JSON. */
export function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** The first position from `position` on that is not white space, or `end`. */
export function skipSpace(bytes: Uint8Array, position: number, end: number): number {
  let at = position;
  while (at < end && isSpace(bytes[at] as number)) at++;
  return at;
}

/**
 * Finds the end of one object, array or string; goes on where it stopped when more bytes are there. `position` may lie one behind
 * the bytes: an escape then waits for its second byte.
 */
export class ValueSkipper {
  position = 0;
  #depth = 0;
  #inString = false;
  #stack = new Uint8Array(64);

  /** Begins at `position`, where `{`, `[` or a quote stands. */
  start(position: number): void {
    this.position = position;
    this.#depth = 0;
    this.#inString = false;
  }

  /** @returns the position behind the value, or -1 if it is not complete before `end` */
  run(bytes: Buffer, end: number): number {
    let at = this.position;
    let depth = this.#depth;
    let stack = this.#stack;
    if (this.#inString) {
      at = skipString(bytes, at, end);
      if (at < 0) return this.#pause(-at, depth, true);
      if (depth === 0) return at;
    } else if (depth > 0 && at < end && bytes[at - 1] === QUOTE && AFTER_STRING[bytes[at] as number] === 0)
      throw textAfterString();
    while (at < end) {
      const byte = bytes[at++] as number;
      if (byte === QUOTE) {
        at = skipString(bytes, at, end);
        if (at < 0) return this.#pause(-at, depth, true);
        if (depth === 0) return at;
        if (at < end && AFTER_STRING[bytes[at] as number] === 0) throw textAfterString();
      } else if ((byte & 0xdf) === OPEN_BRACKET) {
        if (depth === stack.length) stack = this.#grow();
        stack[depth++] = byte;
      } else if ((byte & 0xdf) === CLOSE_BRACKET) {
        // In ASCII both closing brackets come two behind their opening ones.
        if (stack[--depth] !== byte - 2) throw codecError("CODEC_MALFORMED", "reading JSON: brackets do not match");
        if (depth === 0) return at;
      }
    }
    return this.#pause(at, depth, false);
  }

  #pause(position: number, depth: number, inString: boolean): -1 {
    this.position = position;
    this.#depth = depth;
    this.#inString = inString;
    return -1;
  }

  #grow(): Uint8Array<ArrayBuffer> {
    if (this.#stack.length >= MAX_DEPTH) throw codecError("CODEC_MALFORMED", `reading JSON: nested over ${MAX_DEPTH} deep`);
    const grown = new Uint8Array(Math.min(this.#stack.length * 4, MAX_DEPTH));
    grown.set(this.#stack);
    this.#stack = grown;
    return grown;
  }
}

/**
 * Skips a string whose opening quote lies before `position`.
 * @returns the position behind the closing quote; if there is none before `end`, the negative position to go on from, which
 * may be one behind `end`. Never 0, since a quote lies before.
 */
export function skipString(bytes: Buffer, position: number, end: number): number {
  let at = position;
  for (;;) {
    const limit = Math.min(at + LONG_STRING, end);
    while (at < limit) {
      const byte = bytes[at++] as number;
      if (byte === QUOTE) return at;
      if (byte === BACKSLASH) at++;
    }
    if (at >= end) return -at;
    at = skipToQuote(bytes, at, end);
  }
}

// Without this check a lost quote would turn the text inside out: strings into structure, other objects into strings.
function textAfterString(): Error {
  return codecError("CODEC_MALFORMED", "reading JSON: a string is followed by text");
}

// Jumps over the plain part of a long string: to the next quote if it closes the string, behind it if it is escaped.
function skipToQuote(bytes: Buffer, position: number, end: number): number {
  const found = bytes.subarray(position, end).indexOf(QUOTE);
  const quote = found < 0 ? end : position + found;
  let slashes = 0;
  while (quote - slashes > position && bytes[quote - slashes - 1] === BACKSLASH) slashes++;
  return slashes % 2 === 0 ? quote : quote + 1;
}
