// JSON from outside: bytes to a checked value, in one step.
import type { z } from "zod";

/** @throws SyntaxError if the text is not JSON */
export function parseJson(text: string | Uint8Array): unknown {
  return JSON.parse(
    typeof text === "string" ? text : Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString("utf8"),
  );
}

/** Undefined if the text is not JSON. */
export function tryParseJson(text: string | Uint8Array): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** @throws SyntaxError if the text is not JSON, ZodError if the value does not have the shape */
export function readJson<S extends z.ZodType>(schema: S, text: string | Uint8Array): z.output<S> {
  return schema.parse(parseJson(text));
}

/** A JSON value as text for a message. `String` would throw for `{"toString": []}`. */
export function jsonText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** `T` with all properties and arrays readonly, at every depth. */
export type Immutable<T> = T extends readonly (infer Item)[]
  ? readonly Immutable<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Immutable<T[Key]> }
    : T;
