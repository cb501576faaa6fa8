// The Events of a rollout, for a step and the status before it: its start, each shard, its end, and why it
// cannot begin. Pure. Called by the rollout reconciler.
import type { EventType } from "../../runtime/events.ts";
import { isGoingOn, type RolloutStep } from "./plan-rollout.ts";
import type { RolloutStatus } from "./roll-facts.ts";

export const ROLLOUT_EVENTS = ["RolloutStarted", "RolloutShard", "RolloutFinished", "RolloutRefused"] as const;

export interface RolloutEvent {
  readonly type: EventType;
  readonly reason: (typeof ROLLOUT_EVENTS)[number];
  readonly message: string;
}

const REFUSED = ["NotOnDelete", "TooManyPods", "UnknownShard"];

export function rolloutEvents(before: RolloutStatus | undefined, step: RolloutStep): RolloutEvent[] {
  if (step.kind === "off") return [];
  const { revision, shard, waitingFor = "", message = "", total } = step.status;
  if (REFUSED.includes(waitingFor)) {
    return before?.message === message ? [] : [{ type: "Warning", reason: "RolloutRefused", message }];
  }
  if (revision === undefined) return [];
  const type = "Normal";
  if (step.kind === "done") return isGoingOn(before, revision) ? [{ type, reason: "RolloutFinished", message }] : [];
  const begun = `shard ${shard} gets revision ${revision}, beginning with pod ${step.status.pod}`;
  return [
    ...(isGoingOn(before, revision)
      ? []
      : [{ type, reason: "RolloutStarted", message: `revision ${revision} is rolled out to ${total} pods` } as const]),
    ...(step.kind === "evict" && step.isFirst ? [{ type, reason: "RolloutShard", message: begun } as const] : []),
  ];
}
