// Compares and decodes the strings of JSON text. Strings that two readers could read differently (bad
// escapes, bad UTF-8, another case) are distinguished from strings that all readers read alike.
import { BACKSLASH } from "./scan.ts";

/** How a key compares with a name. `variant`: equal only for a reader that ignores case. */
export type KeyMatch = "no" | "exact" | "variant";

export interface KeyName {
  readonly text: string;
  readonly bytes: Uint8Array;
}

/** @param text ASCII letters */
export function keyName(text: string): KeyName {
  return { text, bytes: new TextEncoder().encode(text) };
}

/** True if the text between two positions has neither escapes nor bytes outside ASCII. */
function isPlain(bytes: Uint8Array, start: number, end: number): boolean {
  let seen = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number;
    seen |= byte === BACKSLASH ? 0x80 : byte;
  }
  return seen < 0x80;
}

/** Compares the text of a string, between its quotes, with a name. Escapes are resolved first. */
export function matchKey(bytes: Buffer, start: number, end: number, plain: boolean, name: KeyName): KeyMatch {
  if (!plain) return matchDecoded(decode(bytes, start, end), name.text);
  const wanted = name.bytes;
  if (end - start !== wanted.length) return "no";
  let exact = true;
  for (let index = 0; index < wanted.length; index++) {
    const different = (bytes[start + index] as number) ^ (wanted[index] as number);
    if (different === 0) continue;
    if (different !== 0x20) return "no";
    exact = false;
  }
  return exact ? "exact" : "variant";
}

/** The text of a string, between its quotes; undefined if two readers may read it differently. */
export function textOf(bytes: Buffer, start: number, end: number): string | undefined {
  if (isPlain(bytes, start, end)) return bytes.toString("latin1", start, end);
  const text = decode(bytes, start, end);
  return text?.isWellFormed() && !text.includes("\ufffd") ? text : undefined;
}

function decode(bytes: Buffer, start: number, end: number): string | undefined {
  try {
    const text: unknown = JSON.parse(bytes.toString("utf8", start - 1, end + 1));
    return typeof text === "string" ? text : undefined;
  } catch {
    return undefined;
  }
}

// A lenient reader may read an unreadable key as any key.
function matchDecoded(text: string | undefined, name: string): KeyMatch {
  if (text === name) return "exact";
  if (text === undefined || fold(text) === fold(name)) return "variant";
  return "no";
}

// Upper case comes first: encoding/json folds the long s and the Kelvin sign to s and k.
function fold(text: string): string {
  return text.toUpperCase().toLowerCase();
}
