// The part of `judgeEdit` that all source kinds share. Pure. Invariants: the answer contains all problems
// together. A stored object may be invalid, because an older version accepted it or no manager answered. An
// edit that adds no problem is allowed, so users can correct the object step by step and remove its
// finalizer.
import { formatProblem, type Problem, type ValidationResult } from "../../api/problems.ts";
import type { EditVerdict } from "./app.ts";

/** A valid object after its edit, with the object before if that was valid too. */
export interface ValidEdit<O> {
  readonly value: O;
  readonly previous: O | undefined;
}

/**
 * The verdict about an edit that is refused or whose object is still invalid; otherwise the objects.
 * @param before undefined at creation
 * @param forbidden the problems of the change itself
 */
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

/**
 * The problems that the object did not have before. Indexes of list items are ignored, because they shift.
 */
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
