// Validates input with a zod schema: returns the value, or the problems with paths as Kubernetes writes them.
// Invariant: it never throws, and reports all problems up to a hundred.
import { z } from "zod";
import { jsonText } from "../base/json.ts";
import { didYouMean } from "./nearest.ts";
import { fieldsOf, formatPath, itemsOf, rulesOf } from "./rule.ts";

export interface Problem {
  /** For example `spec.subsets[1].routeRules[0]`; "" is the whole object. */
  readonly path: string;
  /** Set only for a string, a number or a boolean. */
  readonly value?: string | number | boolean;
  /** Names the allowed values and the nearest match. */
  readonly message: string;
}

export type ValidationResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** More problems than this help no user, and some take long to find. */
const MAX_PROBLEMS = 100;
/** The comparison of words is the slowest part of a validation. */
const MAX_SUGGESTIONS = 100;

export function validate<T extends z.ZodType>(schema: T, input: unknown): ValidationResult<z.output<T>> {
  let suggestions = 0;
  const suggest: Suggest = (word, known) => (suggestions++ < MAX_SUGGESTIONS ? didYouMean(word, known) : "");
  const result = schema.safeParse(input, { error: (issue) => messageOf(issue, suggest), reportInput: true });
  const issues = withoutLengths(result.error?.issues ?? []);
  const rules = issues.some(isOverlong) ? [] : broken(schema, input, []);
  // `take` stops the rules at the bound, since they run lazily.
  const found = [...Iterator.from(issues).flatMap(problemsOf).take(MAX_PROBLEMS), ...Iterator.from(rules).take(MAX_PROBLEMS)];
  if (result.success && found.length === 0) return { ok: true, value: result.data };
  const problems = unique(found);
  if (problems.length < MAX_PROBLEMS) return { ok: false, problems };
  return { ok: false, problems: [...problems.slice(0, MAX_PROBLEMS), { path: "", message: "there may be more problems" }] };
}

type Suggest = typeof didYouMean;

/** One line: `spec.subsets[1].routeRules[0]: "canary-ue": no such subRule; did you mean "canary-eu"?` */
export function formatProblem({ path, value, message }: Problem): string {
  // The value may have megabytes, so it is cut before it is quoted.
  const cut = typeof value === "string" ? value.slice(0, MAX_SHOWN + 1) : value;
  const shown = cut === undefined ? [] : [shorten(JSON.stringify(cut))];
  return [...(path === "" ? [] : [path]), ...shown, message].join(": ");
}

const MAX_SHOWN = 120;

function shorten(text: string): string {
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}..."`;
}

/** The length of a value of a wrong type says nothing: a text instead of a list would have too many characters. */
function withoutLengths(issues: readonly z.core.$ZodIssue[]): readonly z.core.$ZodIssue[] {
  const wrong = new Set(issues.flatMap(({ code, path }) => (code === "invalid_type" ? [formatPath(path)] : [])));
  return issues.filter(({ code, path }) => !(code === "too_big" || code === "too_small") || !wrong.has(formatPath(path)));
}

/** Rules compare the items of lists with each other, which takes minutes beyond the bounds of the schema. */
function isOverlong(issue: z.core.$ZodIssue): boolean {
  return issue.code === "too_big" && issue.origin === "array";
}

function problemsOf(issue: z.core.$ZodIssue): Problem[] {
  if (issue.code !== "unrecognized_keys") return [problem(issue.path, issue.message, issue.input)];
  const lines = issue.message.split("\n");
  return issue.keys.slice(0, MAX_PROBLEMS).map((key, index) => problem([...issue.path, key], lines[index] ?? issue.message));
}

function problem(path: readonly PropertyKey[], message: string, value?: unknown): Problem {
  const scalar = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
  return { path: formatPath(path), ...(scalar ? { value } : {}), message };
}

/** Skips schemas below `.catch()`, which refuses no value. */
function* broken(schema: unknown, value: unknown, path: readonly PropertyKey[]): Iterable<Problem> {
  if (!(schema instanceof z.ZodType) || value === undefined) return;
  for (const rule of rulesOf(schema)) {
    for (const finding of rule(value)) {
      yield problem([...path, ...finding.path], finding.message, finding.value);
      if (finding.isLast) return;
    }
  }
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodExactOptional) yield* broken(schema.unwrap(), value, path);
  if (schema instanceof z.ZodArray) {
    for (const [index, item] of itemsOf(value).entries()) yield* broken(schema.element, item, [...path, index]);
  }
  if (schema instanceof z.ZodObject) {
    const fields = fieldsOf(value);
    for (const [name, inner] of Object.entries(schema.shape)) yield* broken(inner, fields[name], [...path, name]);
  }
}

function unique(problems: readonly Problem[]): Problem[] {
  return [...new Map(problems.map((each) => [`${each.path}\n${each.message}`, each])).values()];
}

function messageOf(issue: z.core.$ZodRawIssue, suggest: Suggest): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined
        ? "required"
        : `must be ${TYPE_WORDS[issue.expected] ?? issue.expected}, not ${typeWord(issue.input)}`;
    case "too_small":
      return sizeMessage(issue.origin, "least", issue.minimum);
    case "too_big":
      return sizeMessage(issue.origin, "most", issue.maximum);
    case "invalid_value":
      return valueMessage(issue.input, issue.values.map(String), suggest);
    case "unrecognized_keys": {
      const known = issue.inst instanceof z.ZodObject ? Object.keys(issue.inst.shape) : [];
      return issue.keys
        .slice(0, MAX_PROBLEMS)
        .map((key) => `unknown field${suggest(key, known)}`)
        .join("\n");
    }
    default:
      return issue.message ?? "not valid";
  }
}

function valueMessage(input: unknown, allowed: readonly string[], suggest: Suggest): string {
  const listed = allowed.map((each) => JSON.stringify(each)).join(", ");
  const rule = allowed.length === 1 ? `must be ${listed}` : `must be one of ${listed}${suggest(jsonText(input), allowed)}`;
  return input === undefined ? `required: ${rule}` : rule;
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  object: "an object",
  record: "an object",
  array: "a list",
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
};

function typeWord(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return TYPE_WORDS.array ?? "";
  if (typeof value === "number" && !Number.isInteger(value)) return "a fraction";
  return TYPE_WORDS[typeof value] ?? typeof value;
}

const UNITS: Readonly<Record<string, string>> = {
  string: "characters",
  array: "items",
  record: "entries",
  object: "entries",
  map: "entries",
};

function sizeMessage(origin: string, bound: "least" | "most", limit: number | bigint): string {
  const units = UNITS[origin];
  if (units === undefined) return `must be at ${bound} ${limit}`;
  if (bound === "least" && Number(limit) === 1) return "must not be empty";
  return `must have at ${bound} ${limit} ${units}`;
}
