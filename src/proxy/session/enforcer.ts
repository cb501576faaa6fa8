// Holds the snapshot in force, its compiled views, its listeners and the writes in flight. Invariant: `whenSettled` runs its
// callback only when no write is under way that the snapshot in force would refuse. Called by the session.
import { type ResourceView, type Snapshot, viewOf } from "../../route/snapshot.ts";
import type { ChangeListener, Enforced, GroupResource, Session } from "./session.ts";

export interface Enforcer extends Session {
  /** Puts a snapshot in force and tells the listeners, in the order of their subscription. */
  enforce(snapshot: Snapshot): void;
  /** Takes over version and digest of a snapshot whose rules equal those in force. Nobody is told. */
  relabel(snapshot: Snapshot): void;
  /**
   * Calls `run` once, at once or later, when every write that the snapshot in force refuses has finished. A later call
   * replaces an earlier one that has not run.
   */
  whenSettled(run: () => void): void;
}

interface Write {
  readonly namespace: string;
  readonly target: GroupResource | undefined;
  /** The labels by which the object was judged; undefined if they did not matter. */
  readonly labelSelector: string | undefined;
}

/** @param onListenerError told of what a listener threw; the snapshot is in force all the same, and the others are told */
export function createEnforcer(onListenerError: (error: unknown) => void = () => {}): Enforcer {
  const listeners = new Set<ChangeListener>();
  const writes = new Set<Write>();
  let current: Enforced | undefined;
  let settled: (() => void) | undefined;

  const isRefused = ({ namespace, target, labelSelector }: Write) => {
    if (target === undefined || current === undefined) return true;
    const view = current.view(target.group, target.resource);
    // By other labels it may be another subset's, or not: the write is waited for.
    return view.standing(namespace) !== "mine" || view.objects?.labelSelector !== labelSelector;
  };

  const settle = () => {
    if (settled === undefined) return;
    for (const write of writes) if (isRefused(write)) return;
    const run = settled;
    settled = undefined;
    run();
  };

  return {
    get current() {
      return current;
    },
    enforce(snapshot) {
      const before = current;
      const now = enforced(snapshot);
      current = now;
      for (const listener of [...listeners]) {
        try {
          if (listeners.has(listener)) listener(now, before);
        } catch (error) {
          onListenerError(error);
        }
      }
    },
    relabel(snapshot) {
      if (current !== undefined) current = { snapshot, view: current.view };
    },
    onChange(listener) {
      // A listener of its own a call, so that the same function may be subscribed twice.
      const entry: ChangeListener = (now, before) => listener(now, before);
      listeners.add(entry);
      return () => listeners.delete(entry);
    },
    beginWrite(namespace, target) {
      const labelSelector = target && current?.view(target.group, target.resource).objects?.labelSelector;
      const write: Write = { namespace, target, labelSelector };
      writes.add(write);
      return () => {
        if (writes.delete(write)) settle();
      };
    },
    whenSettled(run) {
      settled = run;
      settle();
    },
  };
}

/** A snapshot with views that are compiled once. */
export function enforced(snapshot: Snapshot): Enforced {
  const views = new Map<string, ResourceView>();
  return {
    snapshot,
    view(group, resource) {
      const key = `${group}/${resource}`;
      let view = views.get(key);
      if (view === undefined) {
        view = withCachedNamespaces(viewOf(snapshot, group, resource));
        // Names come from request paths: a client that invents resources must not fill the memory.
        if (views.size >= MAX_VIEWS) views.clear();
        views.set(key, view);
      }
      return view;
    },
  };
}

const MAX_VIEWS = 4096;

// Planning asks for the namespaces with every list; the answer cannot change within a snapshot.
function withCachedNamespaces(view: ResourceView): ResourceView {
  let names: ReturnType<ResourceView["namespaces"]> | undefined;
  return {
    ...view,
    namespaces() {
      names ??= view.namespaces();
      return names;
    },
  };
}
