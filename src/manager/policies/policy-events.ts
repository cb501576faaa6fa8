// The Kubernetes Events for a change of a policy's status: where a person may have to act, and its end. Pure.
// Invariant: an Event has the message of a condition, so Events contain nothing that the status lacks.
import type { Condition } from "../../api/conditions.ts";
import type { PolicyStatus } from "../../api/policy-status.ts";
import type { EventType } from "../../runtime/events.ts";
import { conditionOf } from "../status/facts.ts";

export interface PolicyEvent {
  readonly type: EventType;
  readonly reason: string;
  readonly message: string;
}

export function policyEvents(before: PolicyStatus | undefined, after: PolicyStatus): PolicyEvent[] {
  const has = (status: PolicyStatus | undefined, type: string, value: Condition["status"]) =>
    conditionOf(status, type)?.status === value;
  const became = (type: string, value: Condition["status"]) => has(after, type, value) && !has(before, type, value);
  const event = (type: EventType, reason: string, condition: string): PolicyEvent => ({
    type,
    reason,
    message: conditionOf(after, condition)?.message ?? "",
  });
  return [
    ...(became("Accepted", "False") ? [event("Warning", "PolicyRejected", "Accepted")] : []),
    ...(became("Open", "True") ? [event("Warning", "BreakerOpened", "Open")] : []),
    ...(became("Open", "False") && has(before, "Open", "True") ? [event("Normal", "BreakerClosed", "Open")] : []),
  ];
}
