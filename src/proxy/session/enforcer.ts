// The enforced snapshot and the writes in flight. Invariant: `whenDrained` runs its callback only when no
// write is in flight that the snapshot refuses; writes to retained namespaces count as refused.
import { createListeners } from "../../base/listeners.ts";
import { mayReach } from "../../mesh/ownership/clusters.ts";
import { isWithin } from "../../mesh/ownership/decide.ts";
import { type ChangeListener, type Enforced, enforced } from "../../mesh/ownership/enforced.ts";
import { hidingCluster, mayHide } from "../../mesh/ownership/hidden-objects.ts";
import type { ResourceView, Snapshot } from "../../mesh/ownership/snapshot.ts";
import type { ClusterSession, Session, WriteTarget } from "./session.ts";
import type { Renewals } from "./when-shown.ts";

export interface Enforcer extends Session, ClusterSession {
  /** Calls the listeners in the order of their subscription. */
  enforce(snapshot: Snapshot): void;
  /** Serves nothing any more: all writes in flight count as refused. Calls no listener. */
  close(): void;
  /** Takes the version and digest of a snapshot with the same rules. Calls no listener. */
  relabel(snapshot: Snapshot): void;
  /** Calls `run` once when no refused write is in flight. A later call replaces one that has not run. */
  whenDrained(run: () => void): void;
  /** True if no write is in flight. */
  readonly isQuiet: boolean;
  readonly renewals: Renewals;
  /** Namespaces whose requests or watches wait for their owner. */
  readonly heldNamespaces: number;
  /** Refused writes in flight that `whenDrained` waits for. The cost grows with all writes in flight. */
  readonly drainingWrites: number;
  /** Calls the listener whenever one of the two numbers may have changed. Returns the unsubscription. */
  onBacklogChange(listener: () => void): () => void;
}

/** Also true for a write to an object whose name is not known. */
function mayReachHidden({ hidden }: ResourceView, { namespace, name }: WriteTarget): boolean {
  if (namespace === undefined || name === undefined) return false;
  return name === "" ? mayHide(hidden, { namespace }) : hidingCluster(hidden, { namespace, name }) !== undefined;
}

/** True if the snapshot refuses the write. Each write has a function of its own. */
type IsRefused = (now: Enforced) => boolean;

/** The snapshot stays in force after the error of a listener, and the other listeners are called. */
export function createEnforcer(onListenerError: (error: unknown) => void = () => {}): Enforcer {
  const listeners = new Set<ChangeListener>();
  const writes = new Set<IsRefused>();
  // How many requests wait for the owner of each unknown namespace.
  const holds = new Map<string, number>();
  const backlogListeners = createListeners<void>();
  const renewals = { running: 0, ended: 0 };
  let current: Enforced | undefined;
  let onDrained: (() => void) | undefined;

  const notifyBacklog = () => {
    backlogListeners.tell();
  };

  const countDraining = () => {
    const now = current;
    return now === undefined ? writes.size : [...writes].filter((isRefused) => isRefused(now)).length;
  };

  const begin = (isRefused: IsRefused) => {
    writes.add(isRefused);
    return () => {
      if (writes.delete(isRefused)) runIfDrained();
    };
  };

  const runIfDrained = () => {
    if (onDrained === undefined) return;
    if (countDraining() === 0) {
      const run = onDrained;
      onDrained = undefined;
      run();
    }
    notifyBacklog();
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
    close() {
      current = undefined;
    },
    relabel(snapshot) {
      if (current !== undefined) current = { snapshot, view: current.view };
    },
    onChange(listener) {
      // One entry for each call, so that the same function may be subscribed twice.
      const entry: ChangeListener = (now, before) => listener(now, before);
      listeners.add(entry);
      return () => listeners.delete(entry);
    },
    beginWrite(namespace, target, reach = "place") {
      if (target === undefined) return begin(() => true);
      const selectorIn = (now: Enforced) => now.view(target.group, target.resource).labelFilter?.labelSelector;
      const admittedBy = current && selectorIn(current);
      return begin((now) => {
        // Under another label selector the object may belong to another subset, so the write counts as refused.
        const selector = selectorIn(now);
        const view = now.view(target.group, target.resource);
        return (
          !isWithin(view, reach, namespace) ||
          (reach !== "foreign" && mayReachHidden(view, target)) ||
          (selector !== undefined && selector !== admittedBy)
        );
      });
    },
    beginEgress: (server) => begin(({ snapshot }) => !mayReach(snapshot, server)),
    beginHold(namespace) {
      holds.set(namespace, (holds.get(namespace) ?? 0) + 1);
      if (holds.get(namespace) === 1) notifyBacklog();
      let isReleased = false;
      return () => {
        if (isReleased) return;
        isReleased = true;
        const left = (holds.get(namespace) ?? 1) - 1;
        if (left > 0) holds.set(namespace, left);
        else if (holds.delete(namespace)) notifyBacklog();
      };
    },
    beginRenewal() {
      renewals.running++;
      return () => {
        renewals.running--;
        renewals.ended++;
      };
    },
    get renewals() {
      return { ...renewals };
    },
    get heldNamespaces() {
      return holds.size;
    },
    get drainingWrites() {
      return onDrained === undefined ? 0 : countDraining();
    },
    onBacklogChange: backlogListeners.add,
    whenDrained(run) {
      onDrained = run;
      runIfDrained();
    },
    get isQuiet() {
      return writes.size === 0;
    },
  };
}
