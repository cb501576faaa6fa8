// The answer of admission to a created or changed VirtualApp. Pure. Invariants: the answer contains all problems at once. A
// stored object may be invalid: an older version accepted it, or no manager answered. An edit that adds no problem is allowed, so
// users can correct the object step by step and remove its finalizer. Called by the validating webhook.
import { oldSpellings } from "../../../api/old-spellings.ts";
import { formatProblem, type Problem } from "../../../api/problems.ts";
import { fieldAt } from "../../../api/rule.ts";
import { type VirtualAppSpec, validateVirtualApp } from "../../../api/virtual-app.ts";
import { RECREATE_ADVICE } from "../../../api/virtual-app-rules.ts";
import { isDeepEqual } from "../../../runtime/deep-equal.ts";
import type { EditVerdict, NamespaceFacts, Surroundings } from "../app.ts";
import { addedProblems } from "../edit-problems.ts";
import { comparedOwners, isSameOwner } from "../namespace-owners.ts";
import { overlapWarnings } from "../pod-overlap.ts";
import { compileRoute } from "./compile-route.ts";

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
    ...overlapWarnings("VirtualApp", app.spec.selector, surroundings.others),
    ...moveWarnings(previous?.spec, app.spec, surroundings.namespaces),
  ];
  return { problems: [], warnings };
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

/** An edit that moves this share of all namespaces, or this many, gets a warning. */
const RISKY_SHARE = 0.5;
const RISKY_COUNT = 100;
/** Bounds the evaluations of terms on namespaces. This many take about 300 ms, in which this replica does nothing else. */
const MAX_TESTS = 1_000_000;

function termsIn({ route }: VirtualAppSpec): number {
  const named = (route?.subRules ?? []).reduce((sum, { match }) => sum + match.length, 0);
  return named + (route?.globalLimits ?? []).length;
}

function moveWarnings(
  before: VirtualAppSpec | undefined,
  after: VirtualAppSpec,
  namespaces: readonly NamespaceFacts[] | undefined,
): string[] {
  if (before === undefined || namespaces === undefined || after.route?.paused === true) return [];
  if (isDeepEqual(before.route, after.route) && isDeepEqual(before.subsets, after.subsets)) return [];
  if (namespaces.length * (termsIn(before) + termsIn(after)) > MAX_TESTS) return [];
  const { moved, total } = routeMoves(before, after, namespaces);
  if (moved === 0 || (moved < total * RISKY_SHARE && moved < RISKY_COUNT)) return [];
  const restarts = after.route?.onLoss === "InPlace" ? "" : "; pods that lose namespaces are restarted one after the other";
  return [`moves ${moved} of ${total} namespaces to other owners${restarts}; spec.route.paused: true stops it`];
}

interface RouteMoves {
  /** Namespaces in which some resource gets another owner. */
  readonly moved: number;
  readonly total: number;
}

/** The number of namespaces that get another owner. Both specs must be valid. As approximate as `comparedOwners`. */
function routeMoves(before: VirtualAppSpec, after: VirtualAppSpec, namespaces: readonly NamespaceFacts[]): RouteMoves {
  const [old, next] = comparedOwners([compileRoute(before, namespaces), compileRoute(after, namespaces)]);
  const moved = namespaces.filter(({ name }) => {
    const nextOwners = next?.(name) ?? [];
    return old?.(name).some((owner, index) => !isSameOwner(owner, nextOwners[index]));
  });
  return { moved: moved.length, total: namespaces.length };
}
