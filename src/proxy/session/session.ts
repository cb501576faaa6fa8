// What the pipeline needs of the session: the snapshot in force, its changes, and the accounting of writes in
// flight. Invariant: a snapshot is enforced from the moment `current` changes; it is acknowledged only after
// every write that it no longer allows has finished.
import { StatusError } from "../../kube/status.ts";
import type { GroupResource } from "../../kube/types.ts";
import type { WriteReach } from "../../route/decide.ts";
import type { ResourceView, Snapshot } from "../../route/snapshot.ts";
import type { LockAccessMessage, UnnamedLockMessage } from "../../wire/messages.ts";
import type { StoredMoves } from "./stored-moves.ts";

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
  /**
   * Counts a request, or a watch, as waiting for the owner of an unknown namespace until the returned
   * function is called (calling it again does nothing).
   */
  beginHold(namespace: string): () => void;
}

/** The snapshot in force. @throws StatusError ServiceUnavailable if there is none */
export function enforcedNow({ current }: Pick<Session, "current">): Enforced {
  if (current === undefined)
    throw new StatusError("ServiceUnavailable", "ctrlmesh: this proxy has no routes yet", { retryAfterSeconds: 1 });
  return current;
}

/**
 * What waits in this proxy, for its reports. Costs grow with the writes under way: to be asked now and then.
 */
export interface Backlog {
  /** Namespaces whose requests or watches wait for their owner. */
  readonly heldNamespaces: number;
  /** Writes under way that the snapshot in force would refuse and whose end its acknowledgement waits for. */
  readonly drainingWrites: number;
  /**
   * Calls the listener synchronously whenever one of the numbers may have changed. Returns the
   * unsubscription.
   */
  onBacklogChange(listener: () => void): () => void;
}

/** Whether the operator may use its lock under the name upstream, as the API server's answers show. */
export type LockAccess = LockAccessMessage;

/** What looks like a lock of the operator that the app does not name, as a refused request shows. */
export type UnnamedLock = UnnamedLockMessage;

/** The writes of a pod whose lock has another name upstream than before are held up. */
export interface ClosedGate {
  /** The lock's name upstream. */
  readonly lock: string;
  /** How long the lease of the lock before may last, from the moment when its name was given up. */
  readonly leaseMs: number;
}

/** Of which lock the last routes of a process were, and whether its gate was closed. */
export interface StoredLock {
  readonly lockName: string;
  readonly subset: string;
  readonly closed: ClosedGate | undefined;
  /** The longest lease that was seen of that lock; undefined if none was. */
  readonly longestLeaseMs: number | undefined;
}

/** The part of the session that keeps the gate of the election layer over restarts of the proxy. */
export interface GateKeeper {
  /**
   * What the process before this one has left; undefined if there was none. Known before the first routes are
   * told.
   */
  readonly lockBefore: StoredLock | undefined;
  /** Keeps the gate's state. It is stored with the routes, before these are acknowledged. */
  keepGate(closed: ClosedGate | undefined): void;
  /** Keeps, likewise, the longest lease that was seen of the lock in force; undefined if none was. */
  keepLease(longestLeaseMs: number | undefined): void;
}

/** The part of the session that keeps the move log over restarts of the proxy. */
export interface MoveKeeper {
  /**
   * What the process before has left; undefined if there was none. Known before the first routes are told.
   */
  readonly movesBefore: StoredMoves | undefined;
  /** Names the source of the moves that are stored with each snapshot, before it is acknowledged. */
  keepMoves(read: () => StoredMoves): void;
}

/** The part of the session that says how it stands with the manager. */
export interface ManagerContact {
  /**
   * Why the manager cannot be asked, or what it has against this pod, in words for a user; undefined if
   * nothing is known.
   */
  readonly trouble: string | undefined;
}

/** The part of the session that says what it waits for. */
export interface Waiting {
  /** What has to come from the manager before the proxy serves; undefined if nothing. */
  readonly awaited: "snapshot" | "policies" | undefined;
}

/** The part of the session that the listener for webhooks tells what is wrong. */
export interface WebhookSink {
  /** Why the listener has no certificate; "" if it has one. Equal values are ignored. */
  setWebhookProblem(problem: string): void;
}

/** The part of the session that the election layer tells who leads. */
export interface LeaderSink {
  /** Whether this pod holds its subset's lock. Equal values are ignored. */
  setLeader(leader: boolean): void;
  /** Whether the operator may use that lock; null while that is not known. */
  setLockAccess(access: LockAccess | null): void;
  /** What looks like a lock that the app does not name; null if nothing does. */
  setUnnamedLock(lock: UnnamedLock | null): void;
}
