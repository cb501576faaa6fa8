// Bounds every message of a status. Pure. Invariant: texts from pods, users and the API server never make the
// status so long that the API server refuses it, which would be tried again without end. A message whose
// parts are bounded (base/plain-text.ts) is never cut here, so it keeps the remedy at its end.
import { plainText } from "../../base/plain-text.ts";

/**
 * A quarter of what the schema allows. Eight conditions have at most 64 Ki characters together. A message of
 * ten problems fits, each of at most 512 characters (base/plain-text.ts).
 */
const MAX_CONDITION_CHARS = 8_192;
/** The limit elsewhere, as in the schema. */
const MAX_MESSAGE_CHARS = 1_024;

export function withBoundedTexts<S extends object>(status: S): S {
  return bounded(status, MAX_MESSAGE_CHARS) as S;
}

function bounded(value: unknown, maxChars: number): unknown {
  if (Array.isArray(value)) return value.map((each) => bounded(each, maxChars));
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).map(([key, each]) => {
    if (key === "message" && typeof each === "string") return [key, plainText(each, maxChars)];
    return [key, bounded(each, key === "conditions" ? MAX_CONDITION_CHARS : maxChars)];
  });
  return Object.fromEntries(fields);
}
