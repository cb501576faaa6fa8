// One label selector that matches every pod of a family, for the webhook's entry. Pure. It may match other
// pods too: the webhook lets these pass. Invariant: a pod that one of the selectors matches is matched.
import { termsOfSelector } from "../../kube/label-selector.ts";
import type { LabelSelector, LabelSelectorRequirement } from "../../kube/types.ts";

/**
 * Of each key that every selector restricts to listed values, the values of all selectors. Undefined if there
 * is no such key: then no selector but the empty one matches every pod.
 */
export function coveringSelector(selectors: readonly LabelSelector[]): LabelSelector | undefined {
  const valuesOf = selectors.map(listedValues);
  const [first = new Map<string, readonly string[]>(), ...others] = valuesOf;
  const matchExpressions = [...first.keys()]
    .filter((key) => others.every((values) => values.has(key)))
    .sort()
    .map((key): LabelSelectorRequirement => {
      const values = new Set(valuesOf.flatMap((each) => each.get(key) ?? []));
      return { key, operator: "In", values: [...values].sort() };
    });
  return matchExpressions.length === 0 ? undefined : { matchExpressions };
}

function listedValues(selector: LabelSelector): Map<string, readonly string[]> {
  const terms = termsOfSelector(selector).filter(({ operator }) => operator === "in");
  return new Map(terms.map(({ key, values }) => [key, values]));
}
