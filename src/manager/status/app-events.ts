// The Kubernetes Events for a change of status: the start of a move and results, once for each change. Pure.
// The restarter itself sends RestartedPod and EvictedPod.
import type { AppStatus, LastHandover } from "../../api/app-status.ts";
import { subsetText } from "../../route/words.ts";
import type { EventType } from "../../runtime/events.ts";
import { CONDITIONS, type Warning } from "./app-status.ts";
import { conditionOf, countText } from "./facts.ts";

interface AppEvent {
  readonly type: EventType;
  /** One CamelCase word, stable. */
  readonly reason: string;
  readonly message: string;
}

export const WARNINGS: readonly ConditionWarning[] = CONDITIONS.flatMap(({ type, warnings = [] }) =>
  warnings.map((warning) => ({ ...warning, condition: type })),
);

interface ConditionWarning extends Warning {
  readonly condition: string;
}

export const EVENT_REASONS: readonly string[] = [
  ...WARNINGS.map(({ reason }) => reason),
  ...CONDITIONS.flatMap(({ recovery }) => recovery ?? []),
  "MovingNamespaces",
  "MovedNamespaces",
  "MoveUndone",
  "RestartedPod",
  "EvictedPod",
];

export function appEvents(before: AppStatus | undefined, now: AppStatus): AppEvent[] {
  const events = WARNINGS.flatMap((rule) => warningEvent(rule, before, now));
  for (const { type, recovery } of CONDITIONS) {
    const row = conditionOf(now, type);
    if (recovery === undefined || row?.status !== "True" || conditionOf(before, type)?.status !== "False") continue;
    events.push({ type: "Normal", reason: recovery, message: row.message });
  }
  const moving = movingEvent(before, now);
  if (moving !== undefined) events.push(moving);
  const last = now.lastHandover;
  if (last !== undefined && last.finishedAt !== before?.lastHandover?.finishedAt) events.push(movedEvent(last, now));
  return events;
}

function warningEvent(rule: ConditionWarning, before: AppStatus | undefined, now: AppStatus): AppEvent[] {
  const { reason, condition, says, repeatsMessage } = rule;
  const row = conditionOf(now, condition);
  if (row === undefined || !says(row, now)) return [];
  const last = conditionOf(before, condition);
  const wasReported = last !== undefined && before !== undefined && says(last, before);
  if (wasReported && (repeatsMessage === undefined || last.message === row.message)) return [];
  return [{ type: "Warning", reason, message: row.message }];
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
