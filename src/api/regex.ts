// Regular expressions in fields, in RE2 syntax. Their size is bounded, because any user may send an
// expression, and the time to compile it grows with its size.
import { RE2JS } from "re2js";
import { z } from "zod";
import { errorMessage } from "../base/errors.ts";
import { celRules } from "./extensions.ts";
import { type Finding, withRules } from "./rule.ts";

export const MAX_REGEX_LENGTH = 512;
/** The bound of one expression, in characters with repetitions expanded. */
const MAX_REGEX_SIZE = 4_096;
/** The bound of all expressions of an object. */
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

/**
 * Ends the checks (`isLast`), because other rules would compile the expressions.
 * @param what names the expressions in the message
 */
export function* boundedRegexes(patterns: readonly string[], path: readonly string[], what: string): Iterable<Finding> {
  const size = patterns.reduce((sum, pattern) => sum + regexSize(pattern.slice(0, MAX_REGEX_LENGTH)), 0);
  if (size <= MAX_REGEX_SUM) return;
  const message = `all ${what} together, with repetitions expanded, have ${size} characters; at most ${MAX_REGEX_SUM} are allowed`;
  yield { path, message, isLast: true };
}

// A token is a quoted text, an escape, a class, a repetition or another character. An unclosed token extends
// to the end (RE2 refuses it anyway). Otherwise each of many open brackets would cause a search to the end,
// which takes quadratic time.
const TOKEN =
  /\\Q[\s\S]*?(?:\\E|$)|\\[pPx]\{[^}]*(?:\}|$)|\\[pP]?[\s\S]|\[\^?\]?(?:\[:\^?\w+:\]|\\[\s\S]|[^\]\\])*(?:\]|\\?$)|\{(?<least>\d+)(?:,(?<most>\d*))?\}|[\s\S]/gu;
const FOLDS_CASE = /\(\?[A-Za-z-]*i/;
/**
 * The cost, in plain characters, of each escape such as \pL and of each character beyond ASCII in a class,
 * since it can stand for a table of Unicode. The second is the cost with case folding.
 */
const TABLE_SIZE = 50;
const FOLDED_SIZE = 1_000;

/** The number of plain characters that take about as long to compile. */
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

// What re2js matches slowly: word boundaries, which switch its fast automaton off, and counted repetitions of
// what may be empty, such as (a?){200}, which give it thousands of states.

/**
 * A repetition includes the "?" that makes it lazy. The last alternative, `[\s\S]`, is any other character.
 */
const SHAPE_TOKEN =
  /(?<quoted>\\Q[\s\S]*?(?:\\E|$))|(?<boundary>\\[bB])|(?<anchor>\\[Az]|[\^$])|(?<flags>\(\?[A-Za-z-]*\))|\\[pPx]\{[^}]*\}|\\[pP]?[\s\S]|\[\^?\]?(?:\[:\^?\w+:\]|\\[\s\S]|[^\]\\])*\]|(?<counted>\{(?<least>\d+)(?<to>,(?<most>\d*))?\})\??|(?<repeated>[*+?])\??|(?<open>\((?:\?(?:P?<[^>]*>|[A-Za-z-]*:))?)|(?<close>\))|(?<or>\|)|[\s\S]/gu;

interface Group {
  /** An alternative before the current one may be empty. */
  mayBeEmpty: boolean;
  /** The part of the current alternative before `last` may be empty. */
  mayBeEmptySoFar: boolean;
  /** The last part, which a repetition applies to, may be empty. */
  lastMayBeEmpty: boolean;
}

const newGroup = (): Group => ({ mayBeEmpty: false, mayBeEmptySoFar: true, lastMayBeEmpty: true });

/**
 * Names the slow part for the author of the expression; undefined if nothing is slow. Call this only for an
 * expression that compiles.
 */
export function slowPart(pattern: string): string | undefined {
  const shape = shapeOf(pattern);
  if (shape.boundary !== undefined) return `${shape.boundary}, a word boundary`;
  return shape.counted && `${shape.counted} after a part that may be empty`;
}

/** For tests: `slowPart` rests on this answer. */
export function mayBeEmpty(pattern: string): boolean {
  return shapeOf(pattern).mayBeEmpty;
}

function shapeOf(pattern: string) {
  const outer: Group[] = [];
  let group = newGroup();
  let boundary: string | undefined;
  let counted: string | undefined;
  const append = (partMayBeEmpty: boolean) => {
    group.mayBeEmptySoFar &&= group.lastMayBeEmpty;
    group.lastMayBeEmpty = partMayBeEmpty;
  };
  const endAlternative = () => {
    group.mayBeEmpty ||= group.mayBeEmptySoFar && group.lastMayBeEmpty;
    group.mayBeEmptySoFar = group.lastMayBeEmpty = true;
  };
  for (const { 0: token, groups: found = {} } of pattern.matchAll(SHAPE_TOKEN)) {
    if (found.counted !== undefined) {
      const most = found.to === undefined ? found.least : found.most;
      if (group.lastMayBeEmpty && Number(most || Number.POSITIVE_INFINITY) > 1) counted ??= token;
      group.lastMayBeEmpty ||= Number(found.least) === 0;
    } else if (found.repeated !== undefined) {
      group.lastMayBeEmpty ||= found.repeated !== "+";
    } else if (found.open !== undefined) {
      outer.push(group);
      group = newGroup();
    } else if (found.close !== undefined) {
      endAlternative();
      const closed = group;
      group = outer.pop() ?? newGroup();
      append(closed.mayBeEmpty);
    } else if (found.or !== undefined) {
      endAlternative();
    } else {
      boundary ??= found.boundary;
      append((found.boundary ?? found.anchor ?? found.flags) !== undefined || token === "\\Q" || token === "\\Q\\E");
    }
  }
  endAlternative();
  return { mayBeEmpty: group.mayBeEmpty, boundary, counted };
}
