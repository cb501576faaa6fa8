// The facts of a policy's status for unit tests.
import type { RuleSnapshot } from "../../src/api/policy-status.ts";
import type { Policy } from "../../src/manager/policies/policy-kind.ts";
import { type PolicyStatusFacts, policyStatus } from "../../src/manager/policies/policy-status.ts";
import type { TargetFacts } from "../../src/manager/policies/target-facts.ts";
import { NO_POLICIES } from "../../src/policy/policy.ts";
import { limitRule } from "./policies.ts";

/** A pod whose proxy enforces the newest rules. */
export function policyTarget(name: string, changes: Partial<TargetFacts> = {}): TargetFacts {
  return {
    name,
    ip: "10.0.0.1",
    isSynced: true,
    isConnected: true,
    isLost: false,
    isLeftOut: false,
    lacksEgress: false,
    keptBecause: "",
    limitedLock: "",
    enforced: "abc",
    problems: [],
    rules: [],
    ...changes,
  };
}

/** A policy with one breaker, named delete-pods. */
export function samplePolicy(changes: Partial<Policy> = {}): Policy {
  const rules = { ...NO_POLICIES, limits: [limitRule({ kind: "breaker" }, { name: "delete-pods" })] };
  return { rules, off: "", endsMs: undefined, isFor: () => true, notes: [], ...changes };
}

/** The same policy, which refuses nothing. */
export function shadowPolicy(): Policy {
  const rules = { ...NO_POLICIES, limits: [limitRule({ kind: "breaker" }, { name: "delete-pods", mode: "Shadow" })] };
  return samplePolicy({ rules });
}

export const OPENED: RuleSnapshot = {
  name: "delete-pods",
  state: "Opened",
  cause: "5 failures in a row, the last with status 500",
  lastTransitionTime: "2026-11-22T10:00:00.000Z",
};

export function samplePolicyStatus(changes: Partial<PolicyStatusFacts> = {}) {
  return policyStatus({
    generation: 2,
    specHash: "hash",
    problems: [],
    policy: samplePolicy(),
    targets: [],
    previous: undefined,
    now: "2026-11-22T12:00:00.000Z",
    ...changes,
  });
}
