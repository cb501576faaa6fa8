// The Kubernetes Events for a change of status: the start of a move and results, once for each change. Pure.
// Invariant: every Warning reports the change of a condition, with the condition's message, so Events contain
// nothing that the status lacks. The restarter itself sends RestartedPod and EvictedPod.

import type { AppStatus, LastHandover } from "../../api/app-status.ts";
import type { Condition, ConditionType } from "../../api/conditions.ts";
import type { EventType } from "../../runtime/events.ts";
import { conditionOf, countText, subsetText } from "./facts.ts";
import { REMEDY_MARK, WAIT_REASONS } from "./reasons.ts";

export interface AppEvent {
  readonly type: EventType;
  /** One CamelCase word, stable. */
  readonly reason: string;
  readonly message: string;
}

/** A Warning and the state of the condition that it reports. */
export interface WarningRule {
  readonly reason: string;
  readonly condition: ConditionType;
  /** True if the condition of this status reports what the Warning is about. */
  readonly says: (condition: Condition, status: AppStatus) => boolean;
  /**
   * If true, a new message is reported again, because it names what to correct. Otherwise only the beginning
   * is reported.
   */
  readonly retold?: true;
}

const isFalse = (row: Condition) => row.status === "False";
const isFalseBy = (reason: string) => (row: Condition) => row.status === "False" && row.reason === reason;

// An old wait is Ready's reason, or its message ends with the wait and the remedy. A wait for a refused
// snapshot has a Warning of its own.
const isStuck: WarningRule["says"] = ({ status, reason, message }, { handover }) => {
  const [wait] = handover?.waitingOn ?? [];
  if (status !== "False" || wait?.reason === "SnapshotRefused") return false;
  const isReason = reason !== "SnapshotRefused" && WAIT_REASONS.some((each) => each === reason);
  return isReason || message.includes(REMEDY_MARK);
};

/** All Warnings. */
export const WARNINGS: readonly WarningRule[] = [
  { reason: "ConfigRejected", condition: "Accepted", says: isFalse, retold: true },
  { reason: "SnapshotRefused", condition: "Ready", says: isFalseBy("SnapshotRefused") },
  { reason: "OwnershipConflict", condition: "Ready", says: isFalseBy("OwnershipConflict") },
  { reason: "ProxyLost", condition: "Ready", says: isFalseBy("ProxyLost") },
  { reason: "LockDenied", condition: "LockPermitted", says: isFalseBy("LockDenied"), retold: true },
  { reason: "LockNotNamed", condition: "LockPermitted", says: isFalseBy("LockNotNamed"), retold: true },
  { reason: "ConfirmationRequired", condition: "Converged", says: isFalseBy("ConfirmationRequired"), retold: true },
  { reason: "InjectionMissed", condition: "TrafficIntercepted", says: isFalse },
  { reason: "WebhookNotIntercepted", condition: "WebhookIntercepted", says: isFalse },
  { reason: "MoveStuck", condition: "Ready", says: isStuck },
];

/** The reasons of all Events about an app. */
export const EVENT_REASONS: readonly string[] = [
  ...WARNINGS.map(({ reason }) => reason),
  "LockPermitted",
  "MovingNamespaces",
  "MovedNamespaces",
  "MoveUndone",
  "RestartedPod",
  "EvictedPod",
];

/** The events between two statuses. */
export function appEvents(before: AppStatus | undefined, now: AppStatus): AppEvent[] {
  const events = WARNINGS.flatMap((rule) => warning(rule, before, now));
  const lock = conditionOf(now, "LockPermitted");
  if (lock?.status === "True" && conditionOf(before, "LockPermitted")?.status === "False") {
    events.push({ type: "Normal", reason: "LockPermitted", message: lock.message });
  }
  const moving = movingEvent(before, now);
  if (moving !== undefined) events.push(moving);
  const last = now.lastHandover;
  if (last !== undefined && last.finishedAt !== before?.lastHandover?.finishedAt) events.push(movedEvent(last, now));
  return events;
}

function warning(rule: WarningRule, before: AppStatus | undefined, now: AppStatus): AppEvent[] {
  const { reason, condition, says, retold } = rule;
  const row = conditionOf(now, condition);
  if (row === undefined || !says(row, now)) return [];
  const last = conditionOf(before, condition);
  const wasReported = last !== undefined && before !== undefined && says(last, before);
  const isTold = wasReported && (retold === undefined || last.message === row.message);
  return isTold ? [] : [{ type: "Warning", reason, message: row.message }];
}

/** One for a whole handover, however many namespaces it moves. */
function movingEvent(before: AppStatus | undefined, { handover, namespaces, routeVersion }: AppStatus): AppEvent | undefined {
  if (handover?.phase !== "Draining" || handover.startedAt === undefined) return undefined;
  if (before?.handover?.startedAt === handover.startedAt) return undefined;
  const { from, to, between } = handover;
  const moving = namespaces?.moving ?? 0;
  // A new manager that waits for silent proxies is Draining too, and moves nothing.
  if (moving === 0 && handover.resources !== true) return undefined;
  const what = moving === 0 ? "the operator's resources" : countText(moving, "namespace");
  const way =
    between === undefined && from !== undefined && to !== undefined
      ? `from ${subsetText(from)} to ${subsetText(to)}`
      : `between ${listText((between ?? [from ?? "", to ?? ""]).map(subsetText))}`;
  return { type: "Normal", reason: "MovingNamespaces", message: `begins to move ${what} ${way}, route ${routeVersion}` };
}

function movedEvent(
  { from, to, between, namespaces, noWriterSeconds, result }: LastHandover,
  { routeVersion }: AppStatus,
): AppEvent {
  const isOfResources = namespaces === 0;
  const among = `between ${listText((between ?? [from, to]).map(subsetText))}`;
  const way = between === undefined && !isOfResources ? `from ${subsetText(from)} to ${subsetText(to)}` : among;
  const what = isOfResources ? "the operator's resources" : countText(namespaces, "namespace");
  const type = "Normal";
  if (result === "Undone") {
    const message = `the ${isOfResources ? "division" : "move"} of ${what} ${way} was undone`;
    return { type, reason: "MoveUndone", message };
  }
  const cost = noWriterSeconds === undefined ? "" : `; nobody could write to them for ${secondsText(noWriterSeconds)} at most`;
  const done = `${isOfResources ? "divided" : "moved"} ${what} ${way}, route ${routeVersion}`;
  return { type, reason: "MovedNamespaces", message: `${done}${isOfResources ? "; no namespace moved" : ""}${cost}` };
}

function listText(words: readonly string[]): string {
  return [words.slice(0, -1).join(", "), ...words.slice(-1)].filter((part) => part !== "").join(" and ");
}

function secondsText(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  return seconds < 100 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds)} s`;
}
