// Follows from the lock traffic whether this pod leads. Invariant: the pod leads from its own successful
// renewal until it releases the lock, another holder is seen, the lock is lost, or the lease ends, whichever
// comes first. With client-go's multilocks, which are two objects, it leads while it holds both.
import type { Clock, Timer } from "../../../base/clock.ts";
import type { LockRecord } from "./lock-record.ts";

export type LeaderTracker = ReturnType<typeof createLeaderTracker>;

/** The default of client-go and controller-runtime, for locks without a duration. */
export const DEFAULT_LEASE_MS = 15_000;
/** A longer lease counts as this one: a timer takes no more than 24 days. */
const MAX_LEASE_MS = 3_600_000;

/** What the last answer about one lock object said. It counts for as long as a lease. */
interface Sight {
  readonly mine: boolean;
  readonly timer: Timer;
}

export interface LeadSink {
  setLeader(leads: boolean): void;
  /** Called with the duration of each record of the lock, by any holder. */
  sawLease?(leaseMs: number): void;
}

export function createLeaderTracker(sink: LeadSink, clock: Clock) {
  const sights = new Map<string, Sight>();
  /** The last record of each lock object. */
  const last = new Map<string, LockRecord>();
  let own = "";
  let over = false;

  const report = () => sink.setLeader(sights.size > 0 && [...sights.values()].every(({ mine }) => mine));
  const note = (resource: string, mine: boolean, durationMs = DEFAULT_LEASE_MS) => {
    if (over) return;
    sights.get(resource)?.timer.cancel();
    const leaseMs = bounded(durationMs);
    sights.set(resource, { mine, timer: clock.after(leaseMs, () => expire(resource, mine, leaseMs)) });
    report();
  };
  // mine => not mine        when the lease ends without a renewal
  // not mine => forgotten   after another lease without a record: the operator has another kind of lock now
  const expire = (resource: string, mine: boolean, leaseMs: number) => {
    if (mine) note(resource, false, leaseMs);
    else sights.delete(resource);
    report();
  };
  const noteRecord = (resource: string, record: LockRecord) => {
    const { holder, durationMs } = record;
    if (holder !== undefined) last.set(resource, record);
    if (durationMs !== undefined && !over) sink.sawLease?.(bounded(durationMs));
  };
  const seen = (resource: string, record: LockRecord) => {
    const { holder, durationMs } = record;
    noteRecord(resource, record);
    // Reading its own record renews nothing.
    if (holder !== undefined && (own === "" || holder !== own)) note(resource, false, durationMs);
  };
  // A write that changes neither the holder nor the time renews nothing, as when a user labels the lock. A
  // lock without a time is renewed by naming the holder again.
  const isRenewal = (sent: LockRecord, before: LockRecord | undefined) => {
    if (before === undefined || sent.holder !== before.holder) return true;
    if (sent.renewedMs !== undefined) return sent.renewedMs !== before.renewedMs;
    return before.renewedMs === undefined && sent.holder === own;
  };

  return {
    seen,
    /** A write of the lock succeeded, with the records in the request and in the answer. */
    written(resource: string, sent: LockRecord, got: LockRecord): void {
      if (over) return;
      if (sent.holder === undefined || !isRenewal(sent, last.get(resource))) {
        seen(resource, got);
        return;
      }
      own = sent.holder;
      const holder = got.holder ?? sent.holder;
      const durationMs = got.durationMs ?? sent.durationMs;
      noteRecord(resource, { holder, durationMs, renewedMs: got.renewedMs ?? sent.renewedMs });
      note(resource, own !== "" && holder === own, durationMs);
    },
    /** The lock is not there. */
    gone(resource: string): void {
      last.delete(resource);
      if (sights.has(resource)) note(resource, false);
    },
    /** A write of the lock failed with a conflict. */
    conflict(resource: string, { holder }: LockRecord): void {
      // The conflict of another elector in the pod says nothing. Only a leader releases the lock (holder "").
      if (sights.has(resource) && (holder === own || holder === "")) note(resource, false);
    },
    /** The pod has another lock now. Later calls change nothing. */
    end(): void {
      if (over) return;
      over = true;
      for (const { timer } of sights.values()) timer.cancel();
      sights.clear();
      report();
    },
  };
}

function bounded(durationMs: number): number {
  return Math.min(Math.max(durationMs, 0), MAX_LEASE_MS);
}
