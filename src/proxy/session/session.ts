// What the other parts of the proxy need of the session: the snapshot in force, its changes, the accounting
// of writes in flight, and a few values for the manager. Invariant: a snapshot is enforced from the moment
// `current` changes; it is acknowledged only after every write that it no longer allows has finished.
import type { Runnable } from "../../base/lifecycle.ts";
import { StatusError } from "../../kube/status.ts";
import type { GroupResource } from "../../kube/types.ts";
import type { WriteReach } from "../../route/decide.ts";
import type { ResourceView, Snapshot } from "../../route/snapshot.ts";
import type { LockAccessMessage, UnnamedLockMessage } from "../../wire/messages.ts";
import type { Policies } from "../policies/policies.ts";
import type { LockMemory, MovesMemory } from "./memory.ts";
import type { Peers } from "./peers-handler.ts";

/** A snapshot in force with its compiled views. */
export interface Enforced {
  readonly snapshot: Snapshot;
  /** The view of one resource, compiled once a snapshot. */
  view(group: string, resource: string): ResourceView;
}

export type ChangeListener = (now: Enforced, before: Enforced | undefined) => void;

export interface Session {
  /** Undefined before the first snapshot: then no traffic is served. */
  readonly current: Enforced | undefined;
  /** Calls the listener synchronously after every newly enforced snapshot. Returns the unsubscription. */
  onChange(listener: ChangeListener): () => void;
  /**
   * Counts a write in a namespace as in flight until the returned function is called (calling it again does
   * nothing). A write of a named resource delays only snapshots that take the namespace away for that
   * resource; without one, all that do for any.
   * @param reach what it reaches beyond that namespace, which then also has to stay the subset's; default:
   * nothing
   */
  beginWrite(namespace: string, target?: GroupResource, reach?: WriteReach): () => void;
  /** Counts a request or watch as waiting for the owner of a namespace, until the result is called. */
  beginHold(namespace: string): () => void;
}

/** The snapshot in force. @throws StatusError ServiceUnavailable if there is none */
export function enforcedNow({ current }: Pick<Session, "current">): Enforced {
  if (current === undefined)
    throw new StatusError("ServiceUnavailable", "ctrlmesh: this proxy has no routes yet", { retryAfterSeconds: 1 });
  return current;
}

/** What waits in this proxy, for its reports. The cost grows with the writes in flight. */
export interface Backlog {
  /** Namespaces whose requests or watches wait for their owner. */
  readonly heldNamespaces: number;
  /** Writes under way that the snapshot in force would refuse and whose end its acknowledgement waits for. */
  readonly drainingWrites: number;
  /** Calls the listener whenever a number may have changed. Returns the unsubscription. */
  onBacklogChange(listener: () => void): () => void;
}

/** Whether the operator may use its lock under the name upstream, as the API server's answers show. */
export type LockAccess = LockAccessMessage;

/** What looks like a lock of the operator that the app does not name, as a refused request shows. */
export type UnnamedLock = UnnamedLockMessage;

/** The session as the other parts of the proxy use it; the process runs it. */
export interface ManagerSession extends Session, Runnable {
  readonly policies: Policies;
  readonly peers: Peers;
  readonly reports: ReportSink;
  readonly memory: { readonly lock: LockMemory; readonly moves: MovesMemory };
  /** What has to come from the manager before the proxy serves; undefined if nothing. */
  readonly awaited: "snapshot" | "policies" | undefined;
  /** Why the manager cannot be asked or refuses this pod, in words for a user; undefined if unknown. */
  readonly trouble: string | undefined;
}

/** What the other parts report to the manager. Equal values are ignored. */
export interface ReportSink {
  /** Whether this pod holds its subset's lock. */
  setLeader(leader: boolean): void;
  /** Whether the operator may use that lock; null while that is not known. */
  setLockAccess(access: LockAccess | null): void;
  /** What looks like a lock that the app does not name; null if nothing does. */
  setUnnamedLock(lock: UnnamedLock | null): void;
  /** Why the listener for webhooks has no certificate; "" if it has one. */
  setWebhookProblem(problem: string): void;
}
