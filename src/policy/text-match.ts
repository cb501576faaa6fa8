// Compiles texts and expressions of rules. Pure. Invariant: an expression (RE2) takes time that is linear in
// the text, and both are bounded: one request must not stop the event loop.
import { RE2JS } from "re2js";

const MAX_PATTERN_LENGTH = 512;
/** A longer text matches no expression. No host is longer. */
export const MAX_TEXT_LENGTH = 2_048;

export function isPattern(pattern: string): boolean {
  if (pattern.length > MAX_PATTERN_LENGTH) return false;
  try {
    RE2JS.compile(pattern);
    return true;
  } catch {
    return false;
  }
}

export type TextTest = (text: string) => boolean;

/** Matches anywhere in the text. @throws an error if the expression does not compile */
export function compilePattern(pattern: string): TextTest {
  const compiled = RE2JS.compile(pattern);
  return (text) => text.length <= MAX_TEXT_LENGTH && compiled.test(text);
}

export function compileTextMatch(match: { readonly exact: string } | { readonly regex: string }): TextTest {
  return "regex" in match ? compilePattern(match.regex) : (text) => text === match.exact;
}
