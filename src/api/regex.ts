// Regular expressions in fields: RE2 syntax, which matches in linear time, with bounds, since any user may
// send one and the time to compile it is proportional to its size.
import { RE2JS } from "re2js";
import { z } from "zod";
import { celRules } from "./extensions.ts";
import { regexSize } from "./regex-size.ts";
import { type Finding, withRules } from "./rule.ts";

export const MAX_REGEX_LENGTH = 512;
/** Of one expression, in characters with repetitions expanded. */
const MAX_REGEX_SIZE = 4_096;
/** Of all expressions of an object together. */
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

/** Finds why a text is no expression within the bounds. */
export function* regexProblems(pattern: unknown): Iterable<Finding> {
  // The schema refuses a longer text.
  if (typeof pattern !== "string" || pattern.length > MAX_REGEX_LENGTH) return;
  const size = regexSize(pattern);
  if (size > MAX_REGEX_SIZE) {
    const message = `too large: with repetitions expanded it has ${size} characters, of ${MAX_REGEX_SIZE} allowed`;
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
 * Finds expressions that are too large together; then no other rule may run.
 * @param what names them in the message
 */
export function* boundedRegexes(patterns: readonly string[], path: readonly string[], what: string): Iterable<Finding> {
  const size = patterns.reduce((sum, pattern) => sum + regexSize(pattern.slice(0, MAX_REGEX_LENGTH)), 0);
  if (size <= MAX_REGEX_SUM) return;
  const message = `all ${what} together, with repetitions expanded, have ${size} characters, of ${MAX_REGEX_SUM} allowed`;
  yield { path, message, isLast: true };
}
