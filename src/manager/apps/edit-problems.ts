// The problems that an edit adds to a stored object. Pure. Used by the `judgeEdit` of each source kind.
import { formatProblem, type Problem } from "../../api/problems.ts";

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
