// Regular expressions in fields, in RE2 syntax. Their size is bounded, because any user may send an
// expression, and the time to compile it grows with its size.
import { RE2JS } from "re2js";
import { z } from "zod";
import { errorMessage } from "../base/errors.ts";
import { celRules } from "./extensions.ts";
import { type Finding, withRules } from "./rule.ts";

export const MAX_REGEX_LENGTH = 512;
/** Of one expression, in characters with repetitions expanded. */
const MAX_REGEX_SIZE = 4_096;
/** Of all expressions of an object. */
const MAX_REGEX_SUM = 16_384;

/** It matches anywhere in the text unless it is anchored. */
export const regexSchema = withRules(
  z
    .string()
    .min(1)
    .max(MAX_REGEX_LENGTH)
    // The API server compiles the expression, and refuses the object if that fails.
    .meta(celRules({ rule: "''.matches(self) in [true, false]", message: "must be a regular expression in RE2 syntax" })),
  regexProblems,
);

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
    yield { path: [], value: pattern, message: `does not compile as RE2: ${errorMessage(error)}` };
  }
}

/** The last finding, because other rules would compile the expressions. `what` names them in the message. */
export function* boundedRegexes(patterns: readonly string[], path: readonly string[], what: string): Iterable<Finding> {
  const size = patterns.reduce((sum, pattern) => sum + regexSize(pattern.slice(0, MAX_REGEX_LENGTH)), 0);
  if (size <= MAX_REGEX_SUM) return;
  const message = `all ${what} together, with repetitions expanded, have ${size} characters; at most ${MAX_REGEX_SUM} are allowed`;
  yield { path, message, isLast: true };
}

/**
 * Quoted text, escapes with braces, other escapes, classes, repetitions, any other character. An unclosed
 * part extends to the end (RE2 refuses it): else each of many open brackets would cause a search to the end.
 */
const TOKEN =
  /\\Q[\s\S]*?(?:\\E|$)|\\[pPx]\{[^}]*(?:\}|$)|\\[pP]?[\s\S]|\[\^?\]?(?:\[:\^?\w+:\]|\\[\s\S]|[^\]\\])*(?:\]|\\?$)|\{(?<least>\d+)(?:,(?<most>\d*))?\}|[\s\S]/gu;
const FOLDS_CASE = /\(\?[A-Za-z-]*i/;
/** A character of Unicode tables costs as much as these plain ones, without and with case folding. */
const TABLE_SIZE = 50;
const FOLDED_SIZE = 1_000;

/** In plain characters that take about as long to compile. */
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
  // A range or an escape beyond ASCII can stand for thousands of characters.
  const unicodeCount = token.match(/[^\0-\x7f]|\\[pPx]/gu)?.length ?? 0;
  return token.length + unicodeCount * unicodeCost;
}
