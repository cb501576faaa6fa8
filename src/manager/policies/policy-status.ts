// The status of a policy object. Pure. Invariants: the status is bounded and sorted, so that equal facts make
// equal bytes; a state that has not changed keeps its time.
import type { Condition } from "../../api/conditions.ts";
import {
  MAX_ALL_SNAPSHOTS,
  MAX_RULE_SNAPSHOTS,
  MAX_TARGET_STATUS,
  type PolicyStatus,
  type TargetStatus,
} from "../../api/policy-status.ts";
import { withTransitionTime } from "../../runtime/status-writer.ts";
import { withBoundedTexts } from "../status/bounded-texts.ts";
import { conditionOf } from "../status/facts.ts";
import {
  accepted,
  active,
  type ConditionFacts,
  isEnforced,
  modeOf,
  open,
  ready,
  type State,
  synced,
  targetMessage,
} from "./policy-conditions.ts";
import type { TargetFacts } from "./target-facts.ts";

export interface PolicyStatusFacts extends ConditionFacts {
  readonly generation: number;
  readonly previous: PolicyStatus | undefined;
}

export function policyStatus(unsorted: PolicyStatusFacts): PolicyStatus {
  const facts = { ...unsorted, targets: [...unsorted.targets].sort(worstFirst) };
  const { generation, specHash, policy, targets, previous, now } = facts;
  const specSince = previous?.observedGeneration === generation ? previous.specSince : undefined;
  return withBoundedTexts({
    observedGeneration: generation,
    specSince: specSince ?? now,
    currentSpecHash: specHash,
    ...(policy !== undefined && { mode: modeOf(policy) }),
    ...(policy?.endsMs !== undefined && { endsAt: new Date(policy.endsMs).toISOString() }),
    lastUpdatedTime: now,
    conditions: conditionsOf(facts),
    targets: {
      total: targets.length,
      synced: targets.filter(isEnforced).length,
      opened: targets.filter(isOpen).length,
    },
    targetStatus: targetStatuses(targets.slice(0, MAX_TARGET_STATUS)),
  });
}

function conditionsOf(facts: PolicyStatusFacts): Condition[] {
  const { policy, previous, generation, now } = facts;
  const states = { accepted: accepted(facts), synced: synced(facts), open: open(facts) };
  const wasActive = conditionOf(previous, "Active") !== undefined;
  const isFault = policy !== undefined && (policy.rules.faults.length > 0 || wasActive);
  const faults = isFault ? active({ ...facts, policy }) : undefined;
  const worst = ready({ ...states, active: faults, mode: policy && modeOf(policy) });
  const condition = (type: string, state: State | undefined) => {
    if (state === undefined) return [];
    const before = conditionOf(previous, type);
    // Each opening is a transition, also while another breaker is open.
    const isSame = type !== "Open" || before?.message === state.message;
    return [withTransitionTime({ type, ...state, observedGeneration: generation }, isSame ? before : undefined, now)];
  };
  return [
    ...condition("Accepted", states.accepted),
    ...condition("Synced", states.synced),
    ...condition("Open", states.open),
    ...condition("Active", faults),
    ...condition("Ready", worst),
  ];
}

function isOpen({ rules }: TargetFacts): boolean {
  return rules.some(({ state }) => state === "Opened");
}

function worstFirst(a: TargetFacts, b: TargetFacts): number {
  return rank(a) - rank(b) || (a.name < b.name ? -1 : 1);
}

function rank(facts: TargetFacts): number {
  if (isOpen(facts)) return 0;
  if (!facts.isSynced) return 1;
  return isEnforced(facts) ? 3 : 2;
}

function targetStatuses(targets: readonly TargetFacts[]): TargetStatus[] {
  // Closed rules of one pod must not take the place of an open one of another: each opening has an Event.
  const open = targets.map(({ rules }) => rules.filter(({ state }) => state !== "Closed").slice(0, MAX_RULE_SNAPSHOTS).length);
  let left = MAX_ALL_SNAPSHOTS - open.reduce((sum, each) => sum + each, 0);
  return targets.map((target, at) => {
    const isOpen = open[at] ?? 0;
    const rules = target.rules.slice(0, Math.min(isOpen + Math.max(0, left), MAX_RULE_SNAPSHOTS));
    left -= rules.length - isOpen;
    return targetStatus(target, rules);
  });
}

function targetStatus(facts: TargetFacts, rules: TargetFacts["rules"]): TargetStatus {
  const { name, ip, enforced } = facts;
  const message = targetMessage(facts);
  return {
    podName: name,
    ...(ip === "" ? {} : { podIP: ip }),
    configHash: enforced,
    ...(message === "" ? {} : { message }),
    limitingSnapshots: [...rules],
  };
}
