// The answer of admission to a created or changed VirtualApp. Pure. Invariants: the answer contains all
// problems at once. A stored object may be invalid: an older version accepted it, or no manager answered. An
// edit that adds no problem is allowed, so users can correct the object step by step and remove its
// finalizer. Called by the validating webhook.
import { oldSpellings } from "../../api/old-spellings.ts";
import { formatProblem, type Problem } from "../../api/problems.ts";
import { fieldAt } from "../../api/rule.ts";
import { type VirtualAppSpec, validateVirtualApp } from "../../api/virtual-app.ts";
import { RECREATE_ADVICE } from "../../api/virtual-app-rules.ts";
import { isDeepEqual } from "../../runtime/deep-equal.ts";
import type { EditVerdict, Reroute, Surroundings } from "../apps/app.ts";
import { addedProblems } from "../apps/edit-problems.ts";
import { overlapWarnings } from "../apps/pod-overlap.ts";
import { routeOf } from "./route-rules.ts";

/** @param before undefined at creation */
export function judgeEdit(before: unknown, after: unknown, surroundings: Surroundings): EditVerdict {
  const checked = validateVirtualApp(after);
  const old = before === undefined ? undefined : validateVirtualApp(before);
  const known = old === undefined || old.ok ? [] : old.problems;
  const problems = [...forbiddenChanges(before, after), ...addedProblems(known, checked.ok ? [] : checked.problems)];
  if (problems.length > 0) return { problems, warnings: [] };
  if (!checked.ok) return { problems, warnings: checked.problems.map((each) => `not corrected yet: ${formatProblem(each)}`) };
  const app = checked.value;
  if (app.metadata.deletionTimestamp !== undefined) return { problems: [], warnings: [] };
  const previous = old?.ok ? old.value : undefined;
  if (previous !== undefined && isDeepEqual(previous.spec, app.spec)) return { problems: [], warnings: [] };
  const warnings = [
    ...oldSpellings(after),
    ...overlapWarnings("VirtualApp", "spec.selector", app.spec.selector, surroundings.others),
  ];
  return { problems: [], warnings, ...rerouteOf(previous?.spec, app.spec) };
}

/** The changes that the CRD's transition rules refuse, so that they are reported with all other problems. */
function forbiddenChanges(before: unknown, after: unknown): readonly Problem[] {
  if (before === undefined) return [];
  const [old, now] = [before, after].map((object) => ({ selector: fieldAt(object, "spec", "selector"), lock: lockIn(object) }));
  return [
    ...(isDeepEqual(old?.selector, now?.selector)
      ? []
      : [{ path: "spec.selector", message: `cannot be changed: ${RECREATE_ADVICE}` }]),
    ...(old?.lock === undefined || old.lock === now?.lock
      ? []
      : [
          {
            path: "spec.configuration.controller",
            message: `the operator's lock ${JSON.stringify(old.lock)} cannot be changed: ${RECREATE_ADVICE}`,
          },
        ]),
  ];
}

function lockIn(object: unknown): unknown {
  const controller = fieldAt(object, "spec", "configuration", "controller");
  return fieldAt(controller, "leaderElectionName") ?? fieldAt(controller, "leaderElection", "lockName");
}

function rerouteOf(before: VirtualAppSpec | undefined, after: VirtualAppSpec): { readonly reroute?: Reroute } {
  if (before === undefined || after.route?.paused === true) return {};
  if (isDeepEqual(before.route, after.route) && isDeepEqual(before.subsets, after.subsets)) return {};
  return { reroute: { before: routeOf(before), after: routeOf(after), restarts: after.route?.onLoss !== "InPlace" } };
}
