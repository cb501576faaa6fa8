// Watches: the start, the events and the end. The sequence of events is pure (WatchPlan, eventFor). The session adds bookmarks,
// timeoutSeconds and the end of a slow reader.
//
// Versions never go back within a session. An object that leaves the selection is DELETED, one that enters is ADDED.
import type { Clock, Timer } from "../../src/base/clock.ts";
import { createStatus, type Status } from "../../src/kube/status.ts";
import { listOptions, parseVersion, tooLargeVersion } from "./list.ts";
import type { StoredObject } from "./model/object.ts";
import { type ResourceType, storageKey } from "./model/registry.ts";
import type { Problem } from "./model/schema.ts";
import type { Selection } from "./selection.ts";
import type { Store, StoreEvent } from "./store.ts";

export type WatchEvent =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: StoredObject }
  | { readonly type: "BOOKMARK"; readonly version: number; readonly initialEventsEnd: boolean }
  | { readonly type: "ERROR"; readonly object: Status };

/** The start of a watch. */
export interface WatchPlan {
  /** Events that are sent first. */
  readonly initial: readonly WatchEvent[];
  /** The session ends after `initial`. */
  readonly ended: boolean;
}

/** Reads the start of a watch from its query. @throws StatusError Invalid or Timeout */
function planWatch(store: Store, type: ResourceType, selection: Selection, query: URLSearchParams): WatchPlan {
  const sendInitial = query.get("sendInitialEvents");
  checkWatchQuery(query, sendInitial);
  const text = query.get("resourceVersion") ?? "";
  const from = text === "" ? 0 : parseVersion(text);
  if (from > store.version && sendInitial !== null) throw tooLargeVersion(from, store.version);
  const key = storageKey(type);
  const wantsState = sendInitial === "true" || (sendInitial === null && from === 0);
  if (wantsState) {
    const state = store.entries(key).filter(([, object]) => selection(object));
    const added = state.map(([, object]): WatchEvent => ({ type: "ADDED", object }));
    const end: WatchEvent[] =
      sendInitial === "true" && isTrue(query.get("allowWatchBookmarks"))
        ? [{ type: "BOOKMARK", version: store.version, initialEventsEnd: true }]
        : [];
    return { initial: [...added, ...end], ended: false };
  }
  // sendInitialEvents=false without a version means: from now on
  const missed = from === 0 ? [] : store.eventsSince(key, from);
  if (missed === undefined) {
    const status = createStatus("Expired", `too old resource version: ${from} (${store.version})`);
    return { initial: [{ type: "ERROR", object: status }], ended: true };
  }
  return { initial: missed.flatMap((event) => eventFor(event, selection) ?? []), ended: false };
}

/** The event that a watch of `selection` gets for a change; undefined if it gets none. */
function eventFor({ type, object, previous, version }: StoreEvent, selection: Selection): WatchEvent | undefined {
  const before = previous !== undefined && selection(previous);
  const after = type !== "DELETED" && selection(object);
  if (before && after) return { type: "MODIFIED", object };
  if (after) return { type: "ADDED", object };
  if (!before) return undefined;
  // The client gets the state that it knew, with the version of the change.
  return { type: "DELETED", object: { ...previous, metadata: { ...previous.metadata, resourceVersion: String(version) } } };
}

export interface WatchSink {
  /** Writes an event. False if the reader is too far behind. */
  send(event: WatchEvent): boolean;
  /** Ends the stream, in order or by closing the connection. */
  end(how: "done" | "too slow"): void;
}

export interface WatchTiming {
  readonly clock: Clock;
  readonly bookmarkMs: number;
  /** Upper bound of the duration of a session. */
  readonly maxMs: number;
}

/** Runs a watch until its time is over or the caller calls the returned function. */
export function runWatch(
  store: Store,
  type: ResourceType,
  selection: Selection,
  query: URLSearchParams,
  sink: WatchSink,
  timing: WatchTiming,
): () => void {
  const plan = planWatch(store, type, selection, query);
  const { clock } = timing;
  const timers = new Set<Timer>();
  let stopListening: () => void = () => {};
  let over = false;
  const close = () => {
    over = true;
    stopListening();
    for (const timer of timers) timer.cancel();
  };
  const send = (event: WatchEvent) => {
    if (over || sink.send(event)) return;
    close();
    sink.end("too slow");
  };
  const finish = () => {
    if (over) return;
    close();
    sink.end("done");
  };
  for (const event of plan.initial) send(event);
  if (plan.ended) {
    finish();
    return close;
  }
  stopListening = store.listen(storageKey(type), (event) => {
    const seen = eventFor(event, selection);
    if (seen !== undefined) send(seen);
  });
  const seconds = Number(query.get("timeoutSeconds") ?? 0);
  timers.add(clock.after(seconds > 0 ? Math.min(seconds * 1000, timing.maxMs) : timing.maxMs, finish));
  if (isTrue(query.get("allowWatchBookmarks"))) {
    let pending: Timer | undefined;
    const schedule = () => {
      if (pending !== undefined) timers.delete(pending);
      pending = clock.after(timing.bookmarkMs, () => {
        send({ type: "BOOKMARK", version: store.version, initialEventsEnd: false });
        if (!over) schedule();
      });
      timers.add(pending);
    };
    schedule();
  }
  return close;
}

function checkWatchQuery(query: URLSearchParams, sendInitial: string | null): void {
  const problems: Problem[] = [];
  const match = query.get("resourceVersionMatch");
  const forbid = (why: string) =>
    problems.push({ reason: "FieldValueForbidden", field: "resourceVersionMatch", message: `Forbidden: ${why}` });
  if (sendInitial !== null && match !== "NotOlderThan") forbid("sendInitialEvents needs resourceVersionMatch=NotOlderThan");
  if (sendInitial === null && match) forbid("needs sendInitialEvents in a watch");
  if (problems.length > 0) throw listOptions(problems);
}

/** Kubernetes' reading of a boolean parameter. */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== "false" && value !== "0";
}
