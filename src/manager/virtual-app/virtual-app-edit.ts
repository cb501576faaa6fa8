// The answer of admission to a created or changed VirtualApp. Pure.
import type { Problem } from "../../api/problems.ts";
import { fieldAt } from "../../api/rule.ts";
import { type VirtualAppSpec, validateVirtualApp } from "../../api/virtual-app.ts";
import { RECREATE_ADVICE } from "../../api/virtual-app-rules.ts";
import { isDeepEqual } from "../../runtime/merge-patch.ts";
import type { EditVerdict, Reroute, Surroundings } from "../apps/app.ts";
import { checkEdit, overlapWarnings } from "../apps/check-edit.ts";
import { routeOf } from "./route-rules.ts";

/** @param before undefined at creation */
export function judgeEdit(before: unknown, after: unknown, surroundings: Surroundings): EditVerdict {
  const checked = checkEdit(before, after, validateVirtualApp, forbiddenChanges(before, after));
  if (!("value" in checked)) return checked;
  const { value: app, previous } = checked;
  if (app.metadata.deletionTimestamp !== undefined) return { problems: [], warnings: [] };
  if (previous !== undefined && isDeepEqual(previous.spec, app.spec)) return { problems: [], warnings: [] };
  const warnings = [
    ...oldNameWarnings(after),
    ...overlapWarnings("VirtualApp", "spec.selector", app.spec.selector, surroundings.others),
  ];
  return { problems: [], warnings, ...rerouteOf(previous?.spec, app.spec) };
}

function forbiddenChanges(before: unknown, after: unknown): readonly Problem[] {
  if (before === undefined) return [];
  const problems: Problem[] = [];
  if (!isDeepEqual(fieldAt(before, "spec", "selector"), fieldAt(after, "spec", "selector"))) {
    problems.push({ path: "spec.selector", message: `cannot be changed: ${RECREATE_ADVICE}` });
  }
  const lock = lockIn(before);
  if (lock !== undefined && lock !== lockIn(after)) {
    const message = `the operator's lock ${JSON.stringify(lock)} cannot be changed: ${RECREATE_ADVICE}`;
    problems.push({ path: "spec.configuration.controller", message });
  }
  return problems;
}

/** An older version of OpenKruise's VirtualApp names the lock in another field. */
function oldNameWarnings(object: unknown): string[] {
  const path = ["spec", "configuration", "controller", "leaderElection", "lockName"];
  if (fieldAt(object, ...path) === undefined) return [];
  return [`${path.join(".")} is the old name of spec.configuration.controller.leaderElectionName`];
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
