// Apps that may select the same pods. Pure.
import { type LabelTerm, termsOfSelector } from "../../kube/label-selector.ts";
import type { LabelSelector } from "../../kube/types.ts";
import { type App, isLive } from "./app.ts";

// Only a warning: the injecting webhook refuses a pod that both apps select.
/**
 * Warns of apps that may select the same pods as an object of this kind.
 * @param field the field of the selector
 */
export function overlapWarnings(kind: string, field: string, selector: LabelSelector, others: readonly App[]): string[] {
  const rivals = others.filter((other) => isLive(other) && mayOverlap(other.pods.selector, selector));
  if (rivals.length === 0) return [];
  const names = rivals.map(({ ref }) => `${ref.kind} ${ref.name}`).join(", ");
  return [`${field}: ${names} may select the same pods as this ${kind}; a pod that two of them select is refused`];
}

/**
 * True if some labels match both selectors. The result is exact, because each term of a selector has one key.
 */
export function mayOverlap(a: LabelSelector, b: LabelSelector): boolean {
  const byKey = Map.groupBy([...termsOfSelector(a), ...termsOfSelector(b)], ({ key }) => key);
  return [...byKey.values()].every(canAllHold);
}

/** True if one value of the key, or its absence, meets all these terms. */
function canAllHold(terms: readonly LabelTerm[]): boolean {
  const valuesOf = (operator: LabelTerm["operator"]) => terms.filter((term) => term.operator === operator);
  const isAbsent = valuesOf("!").length > 0;
  const isPresent = valuesOf("in").length > 0 || valuesOf("exists").length > 0;
  if (isAbsent) return !isPresent;
  const [first, ...others] = valuesOf("in").map(({ values }) => values);
  if (first === undefined) return true; // some value is in no list
  const forbidden = new Set(valuesOf("notin").flatMap(({ values }) => values));
  return first.some((value) => !forbidden.has(value) && others.every((values) => values.includes(value)));
}
