// The policy kinds as kinds that the validating webhook checks. Invariant: as for sources, an edit that adds
// no problem is allowed, so users can correct a stored object step by step.
import { formatProblem } from "../../api/problems.ts";
import { addedProblems } from "../apps/check-edit.ts";
import type { PolicyKind, PolicyObject } from "../policies/policy-kind.ts";
import type { CheckedKind } from "./validate-webhook.ts";

export function checkedPolicies(kinds: readonly PolicyKind[]): CheckedKind[] {
  return kinds.map((kind) => ({
    resource: kind.resource,
    judgeEdit(before, after) {
      const compiled = kind.compile(after as PolicyObject);
      if (compiled.ok) return { problems: [], warnings: compiled.policy.notes };
      const old = before === undefined ? undefined : kind.compile(before as PolicyObject);
      const problems = addedProblems(old === undefined || old.ok ? [] : old.problems, compiled.problems);
      if (problems.length > 0) return { problems, warnings: [] };
      return { problems: [], warnings: compiled.problems.map((each) => `not corrected yet: ${formatProblem(each)}`) };
    },
  }));
}
