// Writes an app's status, updates the metrics, and records the Events for what changes. Invariant: each
// status is computed from the status that it replaces, so the entries of another manager stay (the start of a
// handover, the record of a restart). The restarter itself sends RestartedPod and EvictedPod.
import type { AppStatus, LastHandover } from "../../api/app-status.ts";
import type { Clock } from "../../base/clock.ts";
import type { Resource } from "../../kube/client/resource.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { isLaterVersion } from "../../kube/resource-version.ts";
import { subsetDisplayName, subsetOfDisplayName, subsetText } from "../../mesh/ownership/words.ts";
import type { EventRecorder, EventType } from "../../runtime/events.ts";
import { formatRequest, type Request } from "../../runtime/reconciler.ts";
import { writeStatus } from "../../runtime/status-writer.ts";
import type { Store } from "../../runtime/store.ts";
import type { App, SourceObject } from "../apps/app.ts";
import { CONDITIONS, type Warning } from "./app-status.ts";
import { ageMs, conditionOf, countText, LOST_AFTER_MS, nextStepMs } from "./facts.ts";
import { type Paced, paceHeld, paceProgress } from "./pacing.ts";

export interface StatusFeedOptions {
  readonly resource: Resource<SourceObject>;
  readonly client: Pick<KubeClient, "get" | "patch">;
  readonly store: Pick<Store<SourceObject>, "get" | "wrote">;
  readonly events: Pick<EventRecorder, "event">;
  readonly clock: Clock;
  readonly observed?: { statusWritten(before: AppStatus | undefined, after: AppStatus, nowMs: number): void } | undefined;
}

export type StatusApp = Pick<App, "ref" | "object">;

/** Computes the status from the previous one. `now` is in RFC 3339 with milliseconds. */
export type MakeStatus = (previous: AppStatus | undefined, now: string) => AppStatus;

export interface Written {
  /** False: the status was not written, because the object is gone or its spec has changed. */
  readonly isWritten: boolean;
  /** After this time an age in the status changes; undefined if no age will change. */
  readonly requeueAfterMs?: number;
}

export type StatusFeed = ReturnType<typeof createStatusFeed>;

export function createStatusFeed({ resource, client, store, events, clock, observed }: StatusFeedOptions) {
  /** For each app: when the status last got a new number of held namespaces (monotonic). */
  const heldWrittenMs = new Map<string, number>();
  /** For each app whose status is late: since when (monotonic), and what the next plan needs of it. */
  const late = new Map<string, { readonly sinceMs: number; readonly ownersHashes: AppStatus["ownersHashes"] }>();

  const newest = ({ ref: { name, namespace }, object }: StatusApp): SourceObject => {
    const stored = store.get(name, namespace);
    const { uid, resourceVersion } = object.metadata;
    const isNewer = stored?.metadata.uid === uid && isLaterVersion(stored?.metadata.resourceVersion, resourceVersion);
    return isNewer && stored !== undefined ? stored : object;
  };

  return {
    /** The status to compute the next one from. */
    previous(app: StatusApp): AppStatus | undefined {
      const status = readStatus(newest(app).status);
      const { ownersHashes } = late.get(formatRequest(app.ref)) ?? {};
      return status && ownersHashes ? { ...status, ownersHashes } : status;
    },
    async write(app: StatusApp, make: MakeStatus, signal: AbortSignal): Promise<Written> {
      const { object } = app;
      const key = formatRequest(app.ref);
      const nowMs = clock.now();
      const monotonicMs = clock.monotonicMs();
      const now = new Date(nowMs).toISOString();
      const lateSinceMs = late.get(key)?.sinceMs ?? monotonicMs;
      let change: { before: AppStatus | undefined; made: AppStatus; held: Paced; progress: Paced } | undefined;
      const desired = (current: SourceObject): AppStatus => {
        change = undefined;
        if (!isSameSpec(current, object)) return current.status ?? {};
        const writtenMs = heldWrittenMs.get(key) ?? Number.NEGATIVE_INFINITY;
        const before = readStatus(current.status);
        const made = make(before, now);
        const held = paceHeld(before, made, monotonicMs - writtenMs);
        const progress = paceProgress(before, held.status, monotonicMs - lateSinceMs);
        change = { before, made, held, progress };
        return displayedStatus(progress.status);
      };
      const written = await writeStatus(client, resource, newest(app), desired, { signal });
      if (written === undefined || change === undefined) return { isWritten: false };
      store.wrote(written);
      const { before, made, held, progress } = change;
      const after = progress.status;
      if (after.namespaces?.held !== before?.namespaces?.held) heldWrittenMs.set(key, monotonicMs);
      if (progress.waitMs === undefined) late.delete(key);
      else late.set(key, { sinceMs: lateSinceMs, ownersHashes: made.ownersHashes });
      observed?.statusWritten(before, after, nowMs);
      for (const { type, reason, message } of appEvents(before, after)) events.event(object, type, reason, message);
      const waitsMs = [nextLookMs(after, now), held.waitMs, progress.waitMs].filter((ms) => ms !== undefined);
      return { isWritten: true, ...(waitsMs.length === 0 ? {} : { requeueAfterMs: Math.min(...waitsMs) }) };
    },
    forget(app: Request) {
      heldWrittenMs.delete(formatRequest(app));
      late.delete(formatRequest(app));
    },
  };
}

function isSameSpec(a: SourceObject, b: SourceObject): boolean {
  return a.metadata.uid === b.metadata.uid && a.metadata.generation === b.metadata.generation;
}

/** Milliseconds (at least 1) until an age in the status crosses a step; undefined if none will. */
export function nextLookMs(status: AppStatus, now: string): number | undefined {
  const { handover, proxies } = status;
  const converged = conditionOf(status, "Converged");
  const waits = (handover?.waitingOn ?? []).map(({ since }) => nextStepMs(since, now));
  const due = [
    ...waits,
    ...(converged?.reason === "Rebuilding"
      ? [nextStepMs(converged.lastTransitionTime, now), untilMs(converged.lastTransitionTime, LOST_AFTER_MS, now)]
      : []),
    ...(proxies?.awaySince === undefined ? [] : [untilMs(proxies.awaySince, LOST_AFTER_MS, now)]),
  ].filter((ms) => ms !== undefined);
  return due.length === 0 ? undefined : Math.max(1, Math.min(...due));
}

function untilMs(since: string, afterMs: number, now: string): number | undefined {
  const leftMs = afterMs - ageMs(since, now);
  return leftMs > 0 ? leftMs : undefined;
}

/** The status with names as the code knows them. */
export function readStatus(status: AppStatus | undefined): AppStatus | undefined {
  return status && renameSubsets(status, subsetOfDisplayName);
}

export function displayedStatus(status: AppStatus): AppStatus {
  return renameSubsets(status, subsetDisplayName);
}

function renameSubsets(status: AppStatus, rename: (subset: string) => string): AppStatus {
  const { subsets, handover, lastHandover, restart } = status;
  const { from, to } = handover ?? {};
  return {
    ...status,
    subsets: subsets?.map((each) => ({ ...each, name: rename(each.name) })),
    handover: handover && {
      ...handover,
      from: from === undefined ? undefined : rename(from),
      to: to === undefined ? undefined : rename(to),
      between: handover.between?.map(rename),
    },
    lastHandover: lastHandover && {
      ...lastHandover,
      from: rename(lastHandover.from),
      to: rename(lastHandover.to),
      between: lastHandover.between?.map(rename),
    },
    restart: restart && { ...restart, subset: rename(restart.subset) },
  };
}

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
  "OwnershipNotPublished",
  "PlacementDecisionMissing",
  "PlacementNotPublished",
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
