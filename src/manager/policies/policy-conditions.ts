// The conditions of a policy object. Pure. Invariant: each message names the pod, the rule, the cause and the
// remedy as far as they are known, since many users read nothing else.
import { annotationKey } from "../../api/annotations.ts";
import type { RuleSnapshot } from "../../api/policy-status.ts";
import { formatProblem, type Problem } from "../../api/problems.ts";
import { plainTexts } from "../../base/plain-text.ts";
import { isInEffect } from "../../policy/engine/faults.ts";
import type { LimitRule } from "../../policy/policy.ts";
import { countText, type Verdict, wholeSeconds } from "../status/facts.ts";
import { type Policy, SIZE_BOUND } from "./policy-kind.ts";
import type { TargetFacts } from "./target-facts.ts";

export interface ConditionFacts {
  /** The hash of the spec in force; "" if none is. */
  readonly specHash: string;
  /** The problems of the present spec. */
  readonly problems: readonly Problem[];
  /** The newest valid spec; undefined if this manager has seen none. */
  readonly policy: Policy | undefined;
  /** Sorted, the worst first. */
  readonly targets: readonly TargetFacts[];
  /** RFC 3339. */
  readonly now: string;
}

const ACCEPTED_REASONS = ["Valid", "NoLock", "Invalid", "TooManyRules", "Disabled", "Expired"] as const;
const SYNCED_REASONS = [
  "InSync",
  "ProxiesBehind",
  "AppUnknown",
  "NoEgress",
  "ProxyDisconnected",
  "NoTargets",
  "SpecUnknown",
] as const;

/** The reasons of each condition, a closed set. */
export const POLICY_REASONS = {
  Accepted: ACCEPTED_REASONS,
  Synced: SYNCED_REASONS,
  Open: ["Opened", "HalfOpen", "Closed"],
  Active: ["Active", "Disabled", "Expired", "Shadow", "OutsideOfTime", "NoTargets"],
  Ready: [...ACCEPTED_REASONS, ...SYNCED_REASONS, "Opened", "HalfOpen", "Active", "Shadow"],
} as const;

type PolicyCondition = keyof typeof POLICY_REASONS;

/** What a condition says. */
export type State<C extends PolicyCondition = PolicyCondition> = Verdict<(typeof POLICY_REASONS)[C][number]>;

export type Mode = "Enforce" | "Shadow" | "Disabled";

/** All rules of an object have the same mode. */
export function modeOf({ off, rules: { limits, faults, egress } }: Policy): Mode {
  if (off !== "") return "Disabled";
  return [...limits, ...faults, ...egress].some(({ mode }) => mode === "Shadow") ? "Shadow" : "Enforce";
}

export function isEnforced({ isSynced, isLost, lacksEgress, keptBecause }: TargetFacts): boolean {
  return isSynced && !isLost && !lacksEgress && keptBecause === "";
}

export function accepted({ problems, policy, specHash, targets, now }: ConditionFacts): State<"Accepted"> {
  if (problems.length > 0) {
    const message = plainTexts(problems.map(formatProblem)).join("; ");
    return { status: "False", reason: "Invalid", message: message + keptText(specHash, policy) };
  }
  const full = targets.find(({ isLeftOut }) => isLeftOut);
  if (full !== undefined) {
    const message = `not in force in pod ${full.name}, where older policies or pods leave no room: the policies of a pod may have ${SIZE_BOUND}, and all different sets of a namespace 16 MiB; delete policies, make them smaller, or let more pods have the same ones`;
    return { status: "False", reason: "TooManyRules", message };
  }
  const { off = "", endsMs, notes = [] } = policy ?? {};
  if (off !== "") return { status: "True", reason: "Disabled", message: off };
  if (endsMs !== undefined && endsMs <= Date.parse(now)) {
    const message = `ended by itself at ${new Date(endsMs).toISOString()}; an edit of the spec starts it again`;
    return { status: "True", reason: "Expired", message };
  }
  const isShadow = policy !== undefined && modeOf(policy) === "Shadow";
  const shadow = isShadow ? ["mode Shadow: its rules are counted, and change no answer"] : [];
  const locked = targets.find(({ limitedLock }) => limitedLock !== "");
  const lock =
    locked === undefined
      ? []
      : [
          `the rules also limit the operator's lock (${locked.limitedLock}) in pod ${locked.name}: name it in the app, so that it is exempt`,
        ];
  const message = ["the spec is valid", ...shadow, ...lock, ...plainTexts(notes)].join("; ");
  return { status: "True", reason: locked === undefined ? "Valid" : "NoLock", message };
}

function keptText(specHash: string, policy: Policy | undefined): string {
  if (specHash === "") return "";
  return policy === undefined
    ? "; proxies that have the rules of its previous spec keep them"
    : "; the rules of the previous spec stay in force";
}

export function synced({ targets, policy, problems, specHash }: ConditionFacts): State<"Synced"> {
  if (policy === undefined && problems.length > 0 && specHash !== "") {
    const message = "this manager has not seen the previous spec, so it does not know which proxies have its rules";
    return { status: "Unknown", reason: "SpecUnknown", message };
  }
  if (targets.length === 0) return { status: "Unknown", reason: "NoTargets", message: "selects no pod with a proxy" };
  const late = targets.filter((target) => !isEnforced(target));
  const [first] = late.toSorted((a, b) => lateRank(a) - lateRank(b));
  const what = WHAT_PROXIES_DO[policy === undefined ? "Enforce" : modeOf(policy)];
  const message = `${targets.length - late.length} of ${targets.length} proxies ${what}`;
  if (first === undefined) {
    const isSum = targets.length > 1 && policy?.rules.limits.some(countsByPod) === true;
    const sum = isSum ? `; each counts by itself, so limits add up to ${targets.length} times` : "";
    return { status: "True", reason: "InSync", message: message + sum };
  }
  const { status, reason } = LATE[lateRank(first)] ?? LATE[0];
  return { status, reason, message: `${message}; pod ${first.name}: ${targetMessage(first)}` };
}

/** Pods divide a bucket of the whole policy. A rule that refuses or permits everything counts nothing. */
function countsByPod({ limiter }: LimitRule): boolean {
  if (limiter.kind === "deny" || limiter.kind === "exempt") return false;
  return limiter.kind !== "bucket" || limiter.per !== "Policy";
}

const WHAT_PROXIES_DO: Readonly<Record<Mode, string>> = {
  Enforce: "enforce these rules",
  Shadow: "count these rules (Shadow)",
  Disabled: "have switched these rules off",
};

/** By `lateRank`. */
const LATE = [
  { status: "False", reason: "ProxiesBehind" },
  { status: "False", reason: "AppUnknown" },
  { status: "False", reason: "NoEgress" },
  { status: "Unknown", reason: "ProxyDisconnected" },
] as const;

function lateRank({ isSynced, keptBecause, lacksEgress }: TargetFacts): number {
  if (!isSynced) return 0;
  if (keptBecause !== "") return 1;
  return lacksEgress ? 2 : 3;
}

const NO_EGRESS = `rules about other servers have no effect, since the pod was created without the annotation ${annotationKey("egress")}`;
const LOST = "the proxy has not been connected for over a minute: it keeps its rules, and its state is the last that it reported";

/** "" if the proxy enforces the newest rules. */
export function targetMessage(target: TargetFacts): string {
  const { problems, isSynced, isConnected, isLost, isLeftOut, lacksEgress, keptBecause } = target;
  if (isLeftOut) return "there is no room for this policy in the pod: the condition Accepted has the bounds";
  if (problems.length > 0) return `refused: ${plainTexts(problems).join("; ")}`;
  if (keptBecause !== "") return `keeps the rules of this policy that it has, since ${keptBecause}`;
  if (isLost) return LOST;
  if (isSynced) return lacksEgress ? NO_EGRESS : "";
  return isConnected ? "the newest rules are on their way" : "the proxy is not connected: it keeps its rules";
}

export function open({ targets, policy }: ConditionFacts): State<"Open"> {
  const isShadow = policy !== undefined && modeOf(policy) === "Shadow";
  for (const [state, status, verb] of [
    ["Opened", "True", isShadow ? "would refuse everything" : "refuses everything"],
    ["HalfOpen", "False", isShadow ? "would test the server" : "tests the server"],
  ] as const) {
    const pods = targets.filter(({ rules }) => rules.some((rule) => rule.state === state));
    const [first] = pods;
    if (first === undefined) continue;
    const rules = first.rules.filter((rule) => rule.state === state).map((rule) => ruleText(rule, verb, first.name));
    const more = pods.length === 1 ? "" : `; and in ${countText(pods.length - 1, "more pod")}`;
    return { status, reason: state, message: `${isShadow ? "in the mode Shadow: " : ""}${plainTexts(rules).join("; ")}${more}` };
  }
  return { status: "False", reason: "Closed", message: "no breaker is open" };
}

function ruleText({ name, cause = "", lastTransitionTime }: RuleSnapshot, verb: string, pod: string): string {
  const since = lastTransitionTime === undefined ? "" : ` since ${wholeSeconds(lastTransitionTime)}`;
  return `rule "${name}" ${verb} in pod ${pod}${since}${cause === "" ? "" : ` (${cause})`}`;
}

/** Whether the faults of a policy are in effect in some pod. */
export function active(facts: ConditionFacts & { readonly policy: Policy }): State<"Active"> {
  const { policy, targets, now } = facts;
  const { reason, message } = accepted(facts);
  if (reason === "Disabled" || reason === "Expired") return { status: "False", reason, message };
  if (modeOf(policy) === "Shadow")
    return { status: "False", reason: "Shadow", message: "mode Shadow: faults are counted, and none is made" };
  if (!policy.rules.faults.some((rule) => isInEffect(rule, Date.parse(now))))
    return { status: "False", reason: "OutsideOfTime", message: "no effectiveTime has begun" };
  const pods = targets.filter(({ isSynced }) => isSynced).length;
  if (pods === 0) return { status: "False", reason: "NoTargets", message: "no proxy has the faults" };
  const { endsMs } = policy;
  const end = endsMs === undefined ? "they do not end by themselves" : `until ${wholeSeconds(new Date(endsMs).toISOString())}`;
  return { status: "True", reason: "Active", message: `faults are in effect in ${countText(pods, "pod")}; ${end}` };
}

/** The worst of the conditions: what a reader should know first. An open breaker does what the spec says, so it is ready. */
export function ready(states: {
  readonly accepted: State<"Accepted">;
  readonly synced: State<"Synced">;
  readonly open: State<"Open">;
  readonly active: State<"Active"> | undefined;
  readonly mode: Mode | undefined;
}): State<"Ready"> {
  if (states.accepted.status === "False") return states.accepted;
  if (states.synced.status === "False") return states.synced;
  if (states.accepted.reason === "Disabled" || states.accepted.reason === "Expired") return states.accepted;
  if (states.synced.status === "Unknown") return states.synced;
  const { reason, message } = states.open;
  if (reason !== "Closed") return { status: "True", reason, message };
  if (states.active?.status === "True") return { ...states.active, reason: "Active" };
  if (states.mode === "Shadow") return { ...states.accepted, reason: "Shadow" };
  return { ...states.accepted, message: `${states.accepted.message}; ${states.synced.message}` };
}
