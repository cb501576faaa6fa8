// The parts of `judgeEdit` that all source kinds share. Pure. Invariant: an edit that adds no problem is
// allowed, even if the stored object is invalid (an older version accepted it), so users can correct it step
// by step and remove its finalizer.
import { formatProblem, type Problem, type ValidationResult } from "../../api/problems.ts";
import { type LabelTerm, termsOfSelector } from "../../kube/label-selector.ts";
import type { LabelSelector } from "../../kube/types.ts";
import { type App, type EditVerdict, isLive } from "./app.ts";

interface ValidEdit<O> {
  readonly value: O;
  readonly previous: O | undefined;
}

/** @param before undefined at creation @param forbidden the problems of the change itself */
export function checkEdit<O>(
  before: unknown,
  after: unknown,
  validate: (object: unknown) => ValidationResult<O>,
  forbidden: readonly Problem[],
): EditVerdict | ValidEdit<O> {
  const checked = validate(after);
  const old = before === undefined ? undefined : validate(before);
  const known = old === undefined || old.ok ? [] : old.problems;
  const problems = [...forbidden, ...addedProblems(known, checked.ok ? [] : checked.problems)];
  if (problems.length > 0) return { problems, warnings: [] };
  if (checked.ok) return { value: checked.value, previous: old?.ok ? old.value : undefined };
  return { problems, warnings: checked.problems.map((each) => `not corrected yet: ${formatProblem(each)}`) };
}

/** The problems that the object did not have before. Indexes of list items shift, so they are ignored. */
export function addedProblems(before: readonly Problem[], after: readonly Problem[]): readonly Problem[] {
  const left = new Map<string, number>();
  for (const problem of before) left.set(keyOf(problem), (left.get(keyOf(problem)) ?? 0) + 1);
  return after.filter((problem) => {
    const count = left.get(keyOf(problem)) ?? 0;
    left.set(keyOf(problem), count - 1);
    return count <= 0;
  });
}

function keyOf(problem: Problem): string {
  return formatProblem(problem).replaceAll(/\[\d+\]/g, "[]");
}

/** Only a warning: the injecting webhook refuses a pod that both apps select. @param field of the selector */
export function overlapWarnings(kind: string, field: string, selector: LabelSelector, others: readonly App[]): string[] {
  const selectorOf = ({ pods }: App) => pods.checkedSelector ?? pods.selector;
  const rivals = others.filter((other) => isLive(other) && mayOverlap(selectorOf(other), selector));
  if (rivals.length === 0) return [];
  const names = rivals.map(({ ref }) => `${ref.kind} ${ref.name}`).join(", ");
  return [`${field}: ${names} may select the same pods as this ${kind}; a pod that two of them select is refused`];
}

/** True if some labels match both selectors. The result is exact: each term of a selector has one key. */
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
