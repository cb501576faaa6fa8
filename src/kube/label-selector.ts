// Label selectors: the structured form of the CRDs and the string form of queries
// (k8s.io/apimachinery/pkg/labels).
import type { LabelSelector, LabelSelectorRequirement } from "./types.ts";

export type Labels = Readonly<Record<string, string>>;

const NEGATIONS = { in: "notin", notin: "in", exists: "!", "!": "exists" } as const;

/** The operators of the structured form, as the string form writes them. */
export type LabelOperator = keyof typeof NEGATIONS;

export interface LabelTerm {
  readonly key: string;
  readonly operator: LabelOperator;
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
      default:
        return term.operator satisfies never;
    }
  });
}

/** An empty selector matches everything. */
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

/** The term that matches exactly the labels that this term does not match. */
export function negateTerm(term: LabelTerm): LabelTerm {
  return { ...term, operator: NEGATIONS[term.operator] };
}

/** The string form of terms, with the values of each in a stable order. "" for no terms. */
export function formatTerms(terms: readonly LabelTerm[]): string {
  return terms.map(formatTerm).join(",");
}

function formatTerm({ key, operator, values }: LabelTerm): string {
  switch (operator) {
    case "exists":
      return key;
    case "!":
      return `!${key}`;
    default: {
      // A single value is written with = and !=, since "in ()" means no value, not the empty one.
      const [first = "", ...more] = [...new Set(values)].sort();
      if (more.length === 0) return `${key}${operator === "in" ? "=" : "!="}${first}`;
      return `${key} ${operator} (${[first, ...more].join(",")})`;
    }
  }
}
