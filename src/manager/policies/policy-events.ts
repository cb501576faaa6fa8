// The Events for the changes of a policy's status. Pure. Invariants: each opening, half-opening and closing of
// a breaker in a pod is an Event of its own, which names the cause; one status makes a bounded number of
// Events; what a manager does not know makes none.
import type { Condition } from "../../api/conditions.ts";
import type { PolicyStatus, RuleSnapshot } from "../../api/policy-status.ts";
import { plainText } from "../../base/plain-text.ts";
import type { EventType } from "../../runtime/events.ts";
import { conditionOf, countText } from "../status/facts.ts";

export interface PolicyEvent {
  readonly type: EventType;
  readonly reason: string;
  readonly message: string;
}

/** The recorder takes 256 Events of all objects at a time. */
const MAX_TRANSITIONS = 10;

export function policyEvents(before: PolicyStatus | undefined, after: PolicyStatus): PolicyEvent[] {
  const was = (type: string, status: Condition["status"]) => conditionOf(before, type)?.status === status;
  const is = (type: string, status: Condition["status"]) => conditionOf(after, type)?.status === status;
  const event = (type: EventType, reason: string, condition: string) => {
    return { type, reason, message: conditionOf(after, condition)?.message ?? "" };
  };
  const isRejected = is("Accepted", "False") && !was("Accepted", "False");
  const hasBegun = is("Active", "True") && !was("Active", "True");
  const hasEnded = was("Active", "True") && !is("Active", "True");
  return [
    ...(isRejected ? [event("Warning", "PolicyRejected", "Accepted")] : []),
    ...(hasBegun ? [event("Warning", "FaultsStarted", "Active")] : []),
    ...(hasEnded ? [event("Normal", "FaultsEnded", "Active")] : []),
    ...transitionEvents(before, after),
  ];
}

function transitionEvents(before: PolicyStatus | undefined, after: PolicyStatus): PolicyEvent[] {
  const earlier = statesOf(before);
  const listed = new Set(before?.targetStatus?.map(({ podName }) => podName));
  const isFullOfOpen = (before?.targets?.opened ?? 0) > listed.size;
  const changes = [...statesOf(after)].flatMap(([key, { pod, rule }]) => {
    // A rule that the status did not list was closed, unless the pods with open breakers alone had filled the list.
    if (!earlier.has(key) && isFullOfOpen && !listed.has(pod)) return [];
    const last = earlier.get(key)?.rule ?? { state: "Closed", lastTransitionTime: undefined };
    const isSame = last.state === rule.state && (rule.state === "Closed" || last.lastTransitionTime === rule.lastTransitionTime);
    return isSame ? [] : [transitionEvent(pod, rule, after.mode === "Shadow")];
  });
  const more = changes.length - MAX_TRANSITIONS;
  if (more <= 0) return changes;
  const message = `${countText(more, "more rule")} opened or closed: see targetStatus`;
  return [...changes.slice(0, MAX_TRANSITIONS), { type: "Warning", reason: "MoreBreakersChanged", message }];
}

function statesOf(status: PolicyStatus | undefined): Map<string, { readonly pod: string; readonly rule: RuleSnapshot }> {
  const listed = (status?.targetStatus ?? []).flatMap(({ podName, limitingSnapshots = [] }) =>
    limitingSnapshots.map((rule) => [`${podName}/${rule.name}`, { pod: podName, rule }] as const),
  );
  return new Map(listed);
}

const TEXTS = {
  Opened: { type: "Warning", reason: "BreakerOpened", verb: "opened" },
  HalfOpen: { type: "Normal", reason: "BreakerHalfOpen", verb: "tests the server" },
  Closed: { type: "Normal", reason: "BreakerClosed", verb: "closed" },
} as const;

/** No time, so that equal Events are counted together. */
function transitionEvent(pod: string, { name, state, cause = "" }: RuleSnapshot, isShadow: boolean): PolicyEvent {
  const { type, reason, verb } = TEXTS[state];
  const shadow = isShadow ? " (mode Shadow: it refuses nothing)" : "";
  const message = `rule "${name}" ${verb} in pod ${pod}${shadow}${cause === "" ? "" : `: ${cause}`}`;
  return { type, reason, message: plainText(message) };
}
