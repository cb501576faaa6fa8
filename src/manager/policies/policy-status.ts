// The status of a policy object. Pure. Invariants: bounded, sorted, and worst first, so that equal facts make
// equal bytes; a state that has not changed keeps its time. Called by the reconciler.
import type { Condition } from "../../api/conditions.ts";
import { EGRESS } from "../../api/pod-annotations.ts";
import { MAX_TARGET_STATUS, type PolicyStatus, type RuleSnapshot, type TargetStatus } from "../../api/policy-status.ts";
import type { Problem } from "../../api/problems.ts";
import { formatProblem } from "../../api/problems.ts";
import { plainTexts } from "../../base/plain-text.ts";
import { withBoundedTexts } from "../status/bounded-texts.ts";
import { conditionOf, countText } from "../status/facts.ts";
import { SIZE_BOUND } from "./policy-size.ts";

/** What is known of one pod that the policy is for. */
export interface TargetFacts {
  readonly name: string;
  readonly ip: string;
  /** Its proxy enforces the newest policies. */
  readonly isSynced: boolean;
  readonly isConnected: boolean;
  /** The policies of the pod are too many, so that this one stays out. */
  readonly isLeftOut: boolean;
  /** The policy has rules about other servers, which its proxy does not see. */
  readonly lacksEgress: boolean;
  /** The digest of what its proxy enforces; "" if nothing is known. */
  readonly enforced: string;
  /** Why its proxy refuses them. */
  readonly problems: readonly string[];
  /** The rules of this object, by name. */
  readonly rules: readonly RuleSnapshot[];
}

export interface PolicyStatusFacts {
  readonly generation: number;
  /** Of the spec in force; "" if none is. */
  readonly specHash: string;
  readonly problems: readonly Problem[];
  /** Why the valid spec enforces nothing, in words; "" if it does. */
  readonly off: string;
  /** When the valid spec ends by itself, in milliseconds since the epoch; undefined if it does not. */
  readonly endsMs: number | undefined;
  /** It has limits, and each proxy counts by itself. */
  readonly isLimit: boolean;
  /** Its rules are only counted. */
  readonly isShadow: boolean;
  /** What of the spec has no effect, or not the expected one, in sentences. */
  readonly notes: readonly string[];
  readonly targets: readonly TargetFacts[];
  readonly previous: PolicyStatus | undefined;
  /** RFC 3339. */
  readonly now: string;
}

const NO_EGRESS = `rules about other servers have no effect, since the pod was created without the annotation ${EGRESS}`;

type Verdict = Pick<Condition, "status" | "reason" | "message">;

/** The status, with its time: only a status that differs in anything else should be written. */
export function policyStatus(facts: PolicyStatusFacts): PolicyStatus {
  const { generation, specHash, targets, previous, now } = facts;
  const sorted = [...targets].sort(worstFirst);
  const specSince = previous?.observedGeneration === generation ? previous.specSince : undefined;
  return withBoundedTexts({
    observedGeneration: generation,
    specSince: specSince ?? now,
    currentSpecHash: specHash,
    lastUpdatedTime: now,
    conditions: conditions(
      {
        Accepted: accepted({ ...facts, targets: sorted }),
        Synced: synced(sorted, facts.isLimit),
        Open: open(sorted, facts.isShadow),
      },
      generation,
      previous,
      now,
    ),
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
  const rank = (facts: TargetFacts) => (isOpen(facts) ? 0 : facts.isSynced ? (facts.lacksEgress ? 2 : 3) : 1);
  return rank(a) - rank(b) || (a.name < b.name ? -1 : 1);
}

function targetStatus({ name, ip, enforced, rules, ...facts }: TargetFacts): TargetStatus {
  const message = targetMessage(facts);
  return {
    podName: name,
    ...(ip === "" ? {} : { podIP: ip }),
    configHash: enforced,
    ...(message === "" ? {} : { message }),
    limitingSnapshots: [...rules],
  };
}

type Lateness = Pick<TargetFacts, "problems" | "isSynced" | "isConnected" | "isLeftOut" | "lacksEgress">;

function targetMessage({ problems, isSynced, isConnected, isLeftOut, lacksEgress }: Lateness): string {
  if (isLeftOut) return "there is no room for this policy in the pod: the condition Accepted has the bounds";
  if (problems.length > 0) return `refused: ${plainTexts(problems).join("; ")}`;
  if (isSynced) return lacksEgress ? NO_EGRESS : "";
  return isConnected ? "the newest rules are on their way" : "the proxy is not connected: it keeps its rules";
}

function accepted({ problems, off, endsMs, notes, specHash, targets, now }: PolicyStatusFacts): Verdict {
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

function synced(targets: readonly TargetFacts[], isLimit: boolean): Verdict {
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

function open(targets: readonly TargetFacts[], isShadow: boolean): Verdict {
  const opened = targets.filter(isOpen);
  const [first] = opened;
  if (first === undefined) return { status: "False", reason: "Closed", message: "no breaker is open" };
  const rules = first.rules.filter(({ state }) => state === "Opened").map(({ name }) => `"${name}"`);
  const more = opened.length === 1 ? "" : `, and in ${countText(opened.length - 1, "more pod")}`;
  const rule = `rule ${plainTexts(rules).join(", ")}`;
  const what = isShadow ? `in the mode Shadow: ${rule} would refuse` : `${rule} refuses`;
  return { status: "True", reason: "Opened", message: `${what} everything in pod ${first.name}${more}` };
}

function conditions(
  verdicts: Readonly<Record<string, Verdict>>,
  observedGeneration: number,
  previous: PolicyStatus | undefined,
  now: string,
): Condition[] {
  return Object.entries(verdicts).map(([type, verdict]) => {
    const before = conditionOf(previous, type);
    const lastTransitionTime = before?.status === verdict.status ? before.lastTransitionTime : now;
    return { type, ...verdict, observedGeneration, lastTransitionTime };
  });
}
