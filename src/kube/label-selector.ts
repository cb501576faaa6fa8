// Label selectors: the structured form of the CRDs and the string form of queries
// (k8s.io/apimachinery/pkg/labels). Pure. The manager matches namespaces and pods by them, the route table
// matches objects, and localkube filters lists.
import { MeshError } from "../base/errors.ts";
import type { LabelSelector, LabelSelectorRequirement } from "./types.ts";

export type Labels = Readonly<Record<string, string>>;

/** One term of a selector, with the operators of the string form. */
export interface LabelTerm {
  readonly key: string;
  readonly operator: "in" | "notin" | "exists" | "!" | ">" | "<";
  readonly values: readonly string[];
}

/** True if all terms match. As in Kubernetes, `notin` also matches if the key is missing. */
export function matchesTerms(terms: readonly LabelTerm[], labels: Labels = {}): boolean {
  return terms.every((term) => {
    const value = Object.hasOwn(labels, term.key) ? labels[term.key] : undefined;
    switch (term.operator) {
      case "exists":
        return value !== undefined;
      case "!":
        return value === undefined;
      case "in":
        return value !== undefined && term.values.includes(value);
      case "notin":
        return value === undefined || !term.values.includes(value);
      case ">":
        return value !== undefined && Number(value) > Number(term.values[0]);
      case "<":
        return value !== undefined && Number(value) < Number(term.values[0]);
      default:
        return term.operator satisfies never;
    }
  });
}

/** True if the structured selector matches. An empty selector matches everything. */
export function matchesSelector(selector: LabelSelector, labels: Labels = {}): boolean {
  return matchesTerms(termsOfSelector(selector), labels);
}

/** The terms of a structured selector, matchLabels first, in a stable order. */
export function termsOfSelector(selector: LabelSelector): LabelTerm[] {
  const equal = Object.entries(selector.matchLabels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    ...equal.map(([key, value]): LabelTerm => ({ key, operator: "in", values: [value] })),
    ...(selector.matchExpressions ?? []).map(termOfRequirement),
  ];
}

function termOfRequirement({ key, operator, values = [] }: LabelSelectorRequirement): LabelTerm {
  const operators = { In: "in", NotIn: "notin", Exists: "exists", DoesNotExist: "!" } as const;
  return { key, operator: operators[operator], values };
}

const NEGATIONS = { in: "notin", notin: "in", exists: "!", "!": "exists" } as const;

/** A term with an operator of the structured form. Every such term has a negation. */
export type SetTerm = LabelTerm & { readonly operator: keyof typeof NEGATIONS };

/**
 * True for terms that can be negated: all but comparisons of numbers, which a missing label never matches.
 */
export function isSetTerm(term: LabelTerm): term is SetTerm {
  return Object.hasOwn(NEGATIONS, term.operator);
}

/** The term that matches exactly the labels that this term does not match. */
export function negateTerm(term: SetTerm): SetTerm {
  return { ...term, operator: NEGATIONS[term.operator] };
}

/** The string form of terms; equal sets of values give equal texts. "" for no terms. */
export function formatTerms(terms: readonly LabelTerm[]): string {
  return terms.map(formatTerm).join(",");
}

function formatTerm({ key, operator, values }: LabelTerm): string {
  switch (operator) {
    case "exists":
      return key;
    case "!":
      return `!${key}`;
    case ">":
    case "<":
      return `${key}${operator}${values[0] ?? ""}`;
    default: {
      // A single value is written with = and !=, since "in ()" means no value, not the empty one.
      const [first = "", ...more] = [...new Set(values)].sort();
      if (more.length === 0) return `${key}${operator === "in" ? "=" : "!="}${first}`;
      return `${key} ${operator} (${[first, ...more].join(",")})`;
    }
  }
}

const SET_TERM = /^([\w./-]+)\s+(in|notin)\s*\(([^()]*)\)$/;
const EQUALITY_TERM = /^([\w./-]+)\s*(==|=|!=|>|<)\s*([\w.-]*)$/;
const EXISTS_TERM = /^(!?)\s*([\w./-]+)$/;

/**
 * Parses the string form.
 * @throws MeshError `BAD_SELECTOR`
 */
export function parseTerms(text: string): LabelTerm[] {
  if (text.trim() === "") return [];
  return splitTopLevel(text).map((part) => parseTerm(part.trim(), text));
}

function parseTerm(part: string, whole: string): LabelTerm {
  const set = SET_TERM.exec(part);
  if (set?.[1] !== undefined && set[3] !== undefined) {
    return { key: set[1], operator: set[2] === "in" ? "in" : "notin", values: set[3].split(",").map((value) => value.trim()) };
  }
  const equality = EQUALITY_TERM.exec(part);
  if (equality?.[1] !== undefined && equality[3] !== undefined) {
    const operators = { "=": "in", "==": "in", "!=": "notin", ">": ">", "<": "<" } as const;
    return { key: equality[1], operator: operators[equality[2] as keyof typeof operators], values: [equality[3]] };
  }
  const exists = EXISTS_TERM.exec(part);
  if (exists?.[2] !== undefined) return { key: exists[2], operator: exists[1] === "!" ? "!" : "exists", values: [] };
  throw new MeshError("BAD_SELECTOR", `parsing label selector ${JSON.stringify(whole)}: cannot read ${JSON.stringify(part)}`);
}

function splitTopLevel(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let index = 0; index < text.length; index++) {
    const char = text[index];
    if (char === "(") depth++;
    else if (char === ")") depth--;
    else if (char === "," && depth === 0) {
      parts.push(text.slice(start, index));
      start = index + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}
