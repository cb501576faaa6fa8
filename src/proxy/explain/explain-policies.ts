// The stages "faults" and "limits" of an explanation. Nothing is drawn or charged.
import type { Random } from "../../base/clock.ts";
import type { LimitRule, RuleOrigin } from "../../policy/policy.ts";
import { isLeaseIn, type PolicyRequest, policyRequestOf } from "../../policy/policy-request.ts";
import { faultRefusal } from "../outbound/fault.ts";
import { limitRefusal } from "../outbound/limit.ts";
import { countsDeletes, type Policies } from "../policies/policies.ts";
import { nameOfRule } from "../policies/policy-refusal.ts";
import { dependsOn, type Walk } from "./walk.ts";

export interface ExplainPolicies {
  readonly policies: Pick<Policies, "matching">;
  readonly random: Random;
}

export function explainFaults(walk: Walk, { policies }: ExplainPolicies): void {
  for (const rule of policies.matching(policyRequest(walk)).faults) {
    const { delay, abort, mode, origin } = rule;
    const parts = [
      ...(delay === undefined ? [] : [`delays ${delay.percent} % by ${delay.ms / 1_000} s`]),
      ...(abort === undefined ? [] : [`answers ${abort.percent} % with ${abort.status}`]),
    ];
    walk.say(`${nameOfRule(origin)} ${parts.join(" and ")}${modeText(mode)}`);
    if (mode !== "Enforce" || abort === undefined || abort.percent < 100) continue;
    if (isByUser(walk, rule)) dependsOn(walk, byUserText(origin));
    else throw faultRefusal(walk.call, rule, abort.status);
  }
}

export function explainLimits(walk: Walk, { policies, random }: ExplainPolicies): void {
  const { asked, refused } = policies.matching(policyRequest(walk));
  for (const { rule, decision } of asked) {
    if (decision.kind !== "pass" && countsDeletes(rule)) continue;
    walk.say(`${nameOfRule(rule.origin)} ${decision.kind === "pass" ? "lets it pass" : "refuses it"}${modeText(rule.mode)}`);
  }
  if (refused === undefined) return;
  if (isByUser(walk, refused.rule)) {
    dependsOn(walk, byUserText(refused.rule.origin));
    return;
  }
  if (!countsDeletes(refused.rule)) throw limitRefusal(walk.call, refused, random);
  dependsOn(walk, `${nameOfRule(refused.rule.origin)}: how many objects there are decides`);
}

function modeText(mode: LimitRule["mode"]): string {
  return mode === "Enforce" ? "" : ` (mode ${mode}: it only counts)`;
}

/** True if the rule spares users, and nobody has said who the operator is. */
function isByUser({ asked: { user } }: Walk, { match: { resources } }: Pick<LimitRule, "match">): boolean {
  return user === "" && resources.some(({ except = [] }) => except.some(({ users }) => users !== undefined));
}

function byUserText(origin: RuleOrigin): string {
  return `${nameOfRule(origin)}: it spares users, so the user of the operator decides`;
}

function policyRequest({ asked: { user }, call: { info, record }, enforced: { snapshot } }: Walk): PolicyRequest {
  return policyRequestOf(info, record.lock || isLeaseIn(snapshot.podNamespace, info), () => user);
}
