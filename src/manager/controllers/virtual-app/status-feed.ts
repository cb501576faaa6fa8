// Writes an app's status, tells its Events, and feeds the metrics. Invariant: a status is computed from the one that it
// replaces, so that nothing another manager wrote is lost (a handover's beginning, a restart's record); and a status about an
// older spec is not written over a newer object, which is reconciled anyway. Called by the reconciler.
import type { VirtualApp } from "../../../api/virtual-app.ts";
import type { VirtualAppStatus } from "../../../api/virtual-app-status.ts";
import type { Clock } from "../../../base/clock.ts";
import type { KubeClient } from "../../../kube/client/types.ts";
import type { EventRecorder } from "../../../runtime/events.ts";
import { formatRequest } from "../../../runtime/reconciler.ts";
import { writeStatus } from "../../../runtime/status-writer.ts";
import type { ManagerMetrics } from "../../metrics.ts";
import { VIRTUAL_APPS } from "../../resources.ts";
import { nextLookMs } from "../../translate/status/next-look.ts";
import { appEvents } from "./app-events.ts";

export interface StatusFeedOptions {
  readonly client: Pick<KubeClient, "get" | "patch">;
  readonly events: Pick<EventRecorder, "event">;
  readonly clock: Clock;
  readonly observed?: Pick<ManagerMetrics, "statusWritten"> | undefined;
}

/** How the status follows from the one before, at a time in RFC 3339 with milliseconds. */
export type MakeStatus = (previous: VirtualAppStatus | undefined, now: string) => VirtualAppStatus;

export interface Written {
  /** False: the object is gone, or has another spec by now, and the status is not in it. */
  readonly isWritten: boolean;
  /** When the status says something else though no fact changes. */
  readonly requeueAfterMs?: number;
}

export interface StatusFeed {
  /** The status that the next one follows: what was written last, also before the watch has brought it back. */
  previous(object: VirtualApp): VirtualAppStatus | undefined;
  write(object: VirtualApp, make: MakeStatus, signal: AbortSignal): Promise<Written>;
  /** The app is gone. */
  forget(app: { readonly namespace: string; readonly name: string }): void;
}

export function createStatusFeed({ client, events, clock, observed }: StatusFeedOptions): StatusFeed {
  const written = new Map<string, VirtualApp>();

  /** The object as it was written last, if that is about the same spec. */
  const newest = (object: VirtualApp): VirtualApp => {
    const key = keyOf(object);
    const last = written.get(key);
    if (last === undefined || !isSameSpec(last, object)) return object;
    // The watch has caught up: what it brings from here on is newer, whoever wrote it.
    if (last.metadata.resourceVersion === object.metadata.resourceVersion) written.delete(key);
    return last;
  };

  return {
    previous: (object) => newest(object).status,
    async write(object, make, signal) {
      const nowMs = clock.now();
      const now = new Date(nowMs).toISOString();
      let change: { before: VirtualAppStatus | undefined; after: VirtualAppStatus } | undefined;
      const wished = (current: VirtualApp): VirtualAppStatus => {
        change = undefined;
        if (!isSameSpec(current, object)) return current.status ?? {};
        change = { before: current.status, after: make(current.status, now) };
        return change.after;
      };
      const options = { signal, fieldManager: "ctrlmesh-manager" };
      const base = newest(object);
      const after = await writeStatus(client, VIRTUAL_APPS, base, wished, options);
      if (after === undefined || change === undefined) return { isWritten: false };
      if (after !== base) written.set(keyOf(object), after);
      observed?.statusWritten(change.before, change.after, nowMs);
      for (const { type, reason, message } of appEvents(change.before, change.after)) events.event(object, type, reason, message);
      const requeueAfterMs = nextLookMs(change.after, now);
      return { isWritten: true, ...(requeueAfterMs === undefined ? {} : { requeueAfterMs }) };
    },
    forget: (app) => void written.delete(formatRequest(app)),
  };
}

function keyOf({ metadata: { namespace = "", name = "" } }: VirtualApp): string {
  return formatRequest({ namespace, name });
}

function isSameSpec(a: VirtualApp, b: VirtualApp): boolean {
  return a.metadata.uid === b.metadata.uid && a.metadata.generation === b.metadata.generation;
}
