// The status of a policy object, and the Events for its changes. Pure. Invariants: the status is bounded and
// sorted, so that equal facts make equal bytes; a state that has not changed keeps its time; Events have the
// messages of conditions.
import { annotationKey } from "../../api/annotations.ts";
import type { Condition } from "../../api/conditions.ts";
import { MAX_TARGET_STATUS, type PolicyStatus, type RuleSnapshot, type TargetStatus } from "../../api/policy-status.ts";
import { formatProblem, type Problem } from "../../api/problems.ts";
import { plainTexts } from "../../base/plain-text.ts";
import type { EventType } from "../../runtime/events.ts";
import { withTransitionTime } from "../../runtime/status-writer.ts";
import { withBoundedTexts } from "../status/bounded-texts.ts";
import { conditionOf, countText } from "../status/facts.ts";
import { type Policy, SIZE_BOUND } from "./policy-kind.ts";

export interface TargetFacts {
  readonly name: string;
  readonly ip: string;
  /** Its proxy enforces the newest policies. */
  readonly isSynced: boolean;
  readonly isConnected: boolean;
  /** The pod has too many policies, so this one stays out. */
  readonly isLeftOut: boolean;
  /** The proxy does not see requests to other servers, which the policy has rules about. */
  readonly lacksEgress: boolean;
  /** The digest of the policies that the proxy enforces; "" if it has reported none. */
  readonly enforced: string;
  /** Why the proxy refuses the policies; empty if it does not. */
  readonly problems: readonly string[];
  readonly rules: readonly RuleSnapshot[];
}

/** `off`, `endsMs` and `notes` are those of the newest valid spec. */
export interface PolicyStatusFacts extends Pick<Policy, "off" | "endsMs" | "notes"> {
  readonly generation: number;
  /** The hash of the spec in force; "" if none is. */
  readonly specHash: string;
  readonly problems: readonly Problem[];
  /** The policy has limits, which each proxy counts by itself. */
  readonly isLimit: boolean;
  /** The policy has a limit in the mode Shadow. */
  readonly isShadow: boolean;
  readonly targets: readonly TargetFacts[];
  readonly previous: PolicyStatus | undefined;
  /** RFC 3339. */
  readonly now: string;
}

const NO_EGRESS = `rules about other servers have no effect, since the pod was created without the annotation ${annotationKey("egress")}`;

type State = Pick<Condition, "status" | "reason" | "message">;

export function policyStatus(facts: PolicyStatusFacts): PolicyStatus {
  const { generation, specHash, targets, previous, now } = facts;
  const sorted = [...targets].sort(worstFirst);
  const specSince = previous?.observedGeneration === generation ? previous.specSince : undefined;
  const condition = (type: string, state: State) =>
    withTransitionTime({ type, ...state, observedGeneration: generation }, conditionOf(previous, type), now);
  return withBoundedTexts({
    observedGeneration: generation,
    specSince: specSince ?? now,
    currentSpecHash: specHash,
    lastUpdatedTime: now,
    conditions: [
      condition("Accepted", accepted({ ...facts, targets: sorted })),
      condition("Synced", synced(sorted, facts.isLimit)),
      condition("Open", open(sorted, facts.isShadow)),
    ],
    targets: {
      total: targets.length,
      synced: targets.filter(isEnforced).length,
      opened: targets.filter(isOpen).length,
    },
    targetStatus: sorted.slice(0, MAX_TARGET_STATUS).map(targetStatus),
  });
}

function isOpen({ rules }: TargetFacts): boolean {
  return rules.some(({ state }) => state === "Opened");
}

function isEnforced({ isSynced, lacksEgress }: TargetFacts): boolean {
  return isSynced && !lacksEgress;
}

function worstFirst(a: TargetFacts, b: TargetFacts): number {
  return rank(a) - rank(b) || (a.name < b.name ? -1 : 1);
}

function rank(facts: TargetFacts): number {
  if (isOpen(facts)) return 0;
  if (!facts.isSynced) return 1;
  return facts.lacksEgress ? 2 : 3;
}

function targetStatus(facts: TargetFacts): TargetStatus {
  const { name, ip, enforced, rules } = facts;
  const message = targetMessage(facts);
  return {
    podName: name,
    ...(ip === "" ? {} : { podIP: ip }),
    configHash: enforced,
    ...(message === "" ? {} : { message }),
    limitingSnapshots: [...rules],
  };
}

function targetMessage({ problems, isSynced, isConnected, isLeftOut, lacksEgress }: TargetFacts): string {
  if (isLeftOut) return "there is no room for this policy in the pod: the condition Accepted has the bounds";
  if (problems.length > 0) return `refused: ${plainTexts(problems).join("; ")}`;
  if (isSynced) return lacksEgress ? NO_EGRESS : "";
  return isConnected ? "the newest rules are on their way" : "the proxy is not connected: it keeps its rules";
}

function accepted({ problems, off, endsMs, notes, specHash, targets, now }: PolicyStatusFacts): State {
  if (problems.length > 0) {
    const kept = specHash === "" ? "" : "; the rules of the previous spec stay in force";
    return { status: "False", reason: "Invalid", message: plainTexts(problems.map(formatProblem)).join("; ") + kept };
  }
  const full = targets.find(({ isLeftOut }) => isLeftOut);
  if (full !== undefined) {
    const message = `not in force in pod ${full.name}, where older policies or pods leave no room: the policies of a pod may have ${SIZE_BOUND}, and all different sets of a namespace 16 MiB; delete policies, make them smaller, or let more pods have the same ones`;
    return { status: "False", reason: "TooManyRules", message };
  }
  if (off !== "") return { status: "True", reason: "Disabled", message: off };
  if (endsMs !== undefined && endsMs <= Date.parse(now)) {
    const message = `ended by itself at ${new Date(endsMs).toISOString()}; an edit of the spec starts it again`;
    return { status: "True", reason: "Expired", message };
  }
  return { status: "True", reason: "Valid", message: ["the spec is valid", ...plainTexts(notes)].join("; ") };
}

function synced(targets: readonly TargetFacts[], isLimit: boolean): State {
  if (targets.length === 0) return { status: "Unknown", reason: "NoTargets", message: "selects no pod with a proxy" };
  const late = targets.filter((target) => !isEnforced(target));
  const first = late.find(({ isSynced }) => !isSynced) ?? late[0];
  const message = `${targets.length - late.length} of ${targets.length} proxies enforce these rules`;
  if (first === undefined) {
    const sum = isLimit && targets.length > 1 ? `; each counts by itself, so limits add up to ${targets.length} times` : "";
    return { status: "True", reason: "InSync", message: message + sum };
  }
  const reason = first.isSynced ? "NoEgress" : "ProxiesBehind";
  return { status: "False", reason, message: `${message}; pod ${first.name}: ${targetMessage(first)}` };
}

function open(targets: readonly TargetFacts[], isShadow: boolean): State {
  const opened = targets.filter(isOpen);
  const [first] = opened;
  if (first === undefined) return { status: "False", reason: "Closed", message: "no breaker is open" };
  const rules = first.rules.filter(({ state }) => state === "Opened").map(({ name }) => `"${name}"`);
  const more = opened.length === 1 ? "" : `, and in ${countText(opened.length - 1, "more pod")}`;
  const rule = `rule ${plainTexts(rules).join(", ")}`;
  const what = isShadow ? `in the mode Shadow: ${rule} would refuse` : `${rule} refuses`;
  return { status: "True", reason: "Opened", message: `${what} everything in pod ${first.name}${more}` };
}

/** The Events for a change on which a person may have to act, and for its end. */
export function policyEvents(before: PolicyStatus | undefined, after: PolicyStatus) {
  const was = (type: string, status: Condition["status"]) => conditionOf(before, type)?.status === status;
  const is = (type: string, status: Condition["status"]) => conditionOf(after, type)?.status === status;
  const became = (type: string, status: Condition["status"]) => is(type, status) && !was(type, status);
  const event = (type: EventType, reason: string, condition: string) => {
    return { type, reason, message: conditionOf(after, condition)?.message ?? "" };
  };
  return [
    ...(became("Accepted", "False") ? [event("Warning", "PolicyRejected", "Accepted")] : []),
    ...(became("Open", "True") ? [event("Warning", "BreakerOpened", "Open")] : []),
    ...(became("Open", "False") && was("Open", "True") ? [event("Normal", "BreakerClosed", "Open")] : []),
  ];
}
