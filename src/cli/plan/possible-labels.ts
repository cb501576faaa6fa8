// Which labels a namespace may have, as far as rules can tell them apart. Pure. Invariant: whatever labels it has, the rules treat it as one of
// the results. So a plan holds without the labels if it is the same for all results.
import { type MatchLimitSelector, namesClusters } from "../../api/match-limit-selector.ts";
import { type Labels, type LabelTerm, termsOfSelector } from "../../kube/label-selector.ts";

/** More would take seconds for thousands of namespaces. */
export const MAX_LABEL_SETS = 64;

/** Stands for each value that no rule names. It is no valid value of a label, so no selector has it. */
const OTHER_VALUE = "(other)";

/** Undefined: the rules tell too many apart. */
export function possibleLabels(terms: readonly LabelTerm[]): readonly Labels[] | undefined {
  let sets: readonly Labels[] = [{}];
  for (const [key, ofKey] of Map.groupBy(terms, (term) => term.key)) {
    const named = new Set(ofKey.flatMap(({ values }) => values));
    const values = ofKey.every(({ operator }) => operator === "in") ? [...named] : [...named, OTHER_VALUE];
    if (sets.length * (values.length + 1) > MAX_LABEL_SETS) return undefined;
    sets = sets.flatMap((labels) => [labels, ...values.map((value) => ({ ...labels, [key]: value }))]);
  }
  return sets;
}

/** The terms of rules about namespaces inside other clusters. @param spec of an app, in any form */
export function labelTermsIn(spec: unknown): LabelTerm[] {
  if (Array.isArray(spec)) return spec.flatMap(labelTermsIn);
  if (typeof spec !== "object" || spec === null) return [];
  const match = spec as MatchLimitSelector;
  if (match.namespaceSelector !== undefined) return namesClusters(match) ? termsOfSelector(match.namespaceSelector) : [];
  return Object.values(spec).flatMap(labelTermsIn);
}
