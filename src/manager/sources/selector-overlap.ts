// Whether two label selectors could select the same pod. Pure. Exact for the structured form, whose terms say something of one key
// each: together they can be met if for every key they can.
import { type LabelTerm, termsOfSelector } from "../../kube/label-selector.ts";
import type { LabelSelector } from "../../kube/types.ts";

/** True if there are labels that both match. */
export function mayOverlap(a: LabelSelector, b: LabelSelector): boolean {
  const byKey = Map.groupBy([...termsOfSelector(a), ...termsOfSelector(b)], ({ key }) => key);
  return [...byKey.values()].every(canAllHold);
}

/** Whether one value, or none, meets all of these terms of one key. */
function canAllHold(terms: readonly LabelTerm[]): boolean {
  const valuesOf = (operator: LabelTerm["operator"]) => terms.filter((term) => term.operator === operator);
  const isAbsent = valuesOf("!").length > 0;
  const isPresent = valuesOf("in").length > 0 || valuesOf("exists").length > 0;
  if (isAbsent) return !isPresent;
  const [first, ...others] = valuesOf("in").map(({ values }) => values);
  if (first === undefined) return true; // there is always a value that nobody has listed
  const forbidden = new Set(valuesOf("notin").flatMap(({ values }) => values));
  return first.some((value) => !forbidden.has(value) && others.every((values) => values.includes(value)));
}
