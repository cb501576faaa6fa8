// Regular expressions in fields: RE2 syntax, which matches in linear time. Their size is bounded, because any
// user may send an expression, and the time to compile it grows with its size.
import { RE2JS } from "re2js";
import { z } from "zod";
import { celRules } from "./extensions.ts";
import { type Finding, withRules } from "./rule.ts";

export const MAX_REGEX_LENGTH = 512;
/** The maximum size of one expression, in characters with repetitions expanded. */
const MAX_REGEX_SIZE = 4_096;
/** The maximum size of all expressions of an object together. */
const MAX_REGEX_SUM = 16_384;

/** An expression. It matches anywhere in the text unless it is anchored. */
export const regexSchema = withRules(
  z
    .string()
    .min(1)
    .max(MAX_REGEX_LENGTH)
    // To evaluate this rule the API server compiles the expression, and refuses the object if that fails.
    .meta(celRules({ rule: "''.matches(self) in [true, false]", message: "must be a regular expression in RE2 syntax" })),
  regexProblems,
);

/** Yields the reason why a text is not a valid expression within the bounds. */
export function* regexProblems(pattern: unknown): Iterable<Finding> {
  // The schema refuses a longer text.
  if (typeof pattern !== "string" || pattern.length > MAX_REGEX_LENGTH) return;
  const size = regexSize(pattern);
  if (size > MAX_REGEX_SIZE) {
    const message = `too large: with repetitions expanded it has ${size} characters; at most ${MAX_REGEX_SIZE} are allowed`;
    return yield { path: [], value: pattern, message };
  }
  try {
    RE2JS.compile(pattern);
  } catch (error) {
    yield {
      path: [],
      value: pattern,
      message: `does not compile as RE2: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

/**
 * Reports if all expressions together are too large. Stops validation, because other rules would compile
 * them.
 * @param what names them in the message
 */
export function* boundedRegexes(patterns: readonly string[], path: readonly string[], what: string): Iterable<Finding> {
  const size = patterns.reduce((sum, pattern) => sum + regexSize(pattern.slice(0, MAX_REGEX_LENGTH)), 0);
  if (size <= MAX_REGEX_SUM) return;
  const message = `all ${what} together, with repetitions expanded, have ${size} characters; at most ${MAX_REGEX_SUM} are allowed`;
  yield { path, message, isLast: true };
}

/**
 * Matches one token: quoted text, escapes with braces, other escapes, character classes, repetitions; then
 * any other character. A part that is not closed extends to the end (RE2 refuses it): otherwise each of many
 * open brackets would cause a search to the end.
 */
const TOKEN =
  /\\Q[\s\S]*?(?:\\E|$)|\\[pPx]\{[^}]*(?:\}|$)|\\[pP]?[\s\S]|\[\^?\]?(?:\[:\^?\w+:\]|\\[\s\S]|[^\]\\])*(?:\]|\\?$)|\{(?<least>\d+)(?:,(?<most>\d*))?\}|[\s\S]/gu;
const FOLDS_CASE = /\(\?[A-Za-z-]*i/;
/** The cost of a character from Unicode tables, in plain characters: without and with case folding. */
const TABLE_SIZE = 50;
const FOLDED_SIZE = 1_000;

/** The approximate number of plain characters that take as long to compile. */
export function regexSize(pattern: string): number {
  const unicodeCost = FOLDS_CASE.test(pattern) ? FOLDED_SIZE : TABLE_SIZE;
  const outer: { sum: number; last: number }[] = [];
  let group = { sum: 1, last: 0 };
  for (const { 0: token, groups } of pattern.matchAll(TOKEN)) {
    if (groups?.least !== undefined) {
      const times = Math.max(1, Number(groups.least) + (groups.most === "" ? 1 : 0), Number(groups.most ?? 0));
      group.sum += group.last * (times - 1) + 1;
      group.last *= times;
    } else if (token === "(") {
      outer.push(group);
      group = { sum: 1, last: 0 };
    } else if (token === ")") {
      const last = group.sum + 1;
      const around = outer.pop() ?? { sum: 0, last: 0 };
      group = { sum: around.sum + last, last };
    } else if (token === "*" || token === "+" || token === "?") {
      group.sum++; // `group.last` stays as it is, for (a*){1000}
    } else {
      group.last = sizeOf(token, unicodeCost);
      group.sum += group.last;
    }
  }
  return outer.reduce((sum, group) => sum + group.sum, group.sum);
}

function sizeOf(token: string, unicodeCost: number): number {
  if (token.length === 1 || token.startsWith("\\Q")) return token.length;
  // Beyond ASCII a range or an escape can stand for thousands of characters.
  const unicodeCount = token.match(/[^\0-\x7f]|\\[pPx]/gu)?.length ?? 0;
  return token.length + unicodeCount * unicodeCost;
}
