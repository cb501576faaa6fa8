// What the pipeline needs of the session: the snapshot in force, its changes, and the accounting of writes in flight.
// Invariant: a snapshot is enforced from the moment `current` changes; it is acknowledged only after every write that it
// no longer allows has finished.
import type { ResourceView, Snapshot } from "../../route/snapshot.ts";
import type { LockReviewMessage } from "../../wire/messages.ts";

/** A snapshot in force with its compiled views. */
export interface Enforced {
  readonly snapshot: Snapshot;
  /** The view of one resource, compiled once a snapshot. */
  view(group: string, resource: string): ResourceView;
}

export type ChangeListener = (now: Enforced, before: Enforced | undefined) => void;

/** A resource type by group and name; the core group is "". */
export interface GroupResource {
  readonly group: string;
  readonly resource: string;
}

export interface Session {
  /** Undefined before the first snapshot: then no traffic is served. */
  readonly current: Enforced | undefined;
  /** Calls the listener synchronously after every newly enforced snapshot. Returns the unsubscription. */
  onChange(listener: ChangeListener): () => void;
  /**
   * Counts a write in a namespace as in flight until the returned function is called (calling it again does nothing). A
   * write of a named resource delays only snapshots that take the namespace away for that resource; without one, all that
   * do for any.
   */
  beginWrite(namespace: string, target?: GroupResource): () => void;
}

/** What the API server says about the operator's use of its lock under the name upstream. */
export type LockReview = LockReviewMessage;

/** The part of the session that the election layer tells who leads. */
export interface LeaderSink {
  /** Whether this pod holds its subset's lock. Equal values are ignored. */
  setLeader(leader: boolean): void;
  /** Whether its operator may use that lock; null while nobody knows. */
  setLockReview(review: LockReview | null): void;
}
