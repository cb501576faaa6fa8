// Whether this pod leads, told from the lock traffic that passes. Invariants: it leads from its own successful renewal until a
// release, the sight of another holder, the loss of the lock, or the end of the lease, whichever comes first; a renewal that
// failed for another reason only lets the lease run on. A write that changes neither the holder nor the time of the renewal is
// none: whoever labels a lock does not hold it. With client-go's multilocks, which are two objects, it leads while it holds
// both; another object of the lock's name, which has never had a holder, is no lock. Made by the election layer, one for each
// name that the lock has upstream.
import type { Clock, Timer } from "../../../base/clock.ts";
import type { LeaderSink } from "../../session/session.ts";
import type { LockRecord } from "./lock-record.ts";

export interface LeaderTracker {
  /** A write of the lock succeeded: what was in the request, and what in the answer. */
  written(resource: string, sent: LockRecord, got: LockRecord): void;
  /** The lock is not there. */
  gone(resource: string): void;
  /** A write of the lock met a conflict: somebody else has written to it. */
  conflict(resource: string, sent: LockRecord): void;
  /** The lock was read. */
  seen(resource: string, got: LockRecord): void;
  /** The pod has another lock now. Nobody leads, and whatever is still under way changes nothing. */
  end(): void;
}

/** client-go's and controller-runtime's default, for locks that do not say how long a renewal holds. */
export const DEFAULT_LEASE_MS = 15_000;
/** What a lock may say: a timer takes no more than 24 days. */
const MAX_LEASE_MS = 3_600_000;

/** What was last seen of one lock object, believed for as long as a lease. */
interface Sight {
  readonly mine: boolean;
  readonly timer: Timer;
}

/** Whom a tracker tells. */
export interface LeadSink extends Pick<LeaderSink, "setLeader"> {
  /** For how long a renewal of the lock was said to hold, by whomever. */
  sawLease?(leaseMs: number): void;
}

export function createLeaderTracker(sink: LeadSink, clock: Clock): LeaderTracker {
  const sights = new Map<string, Sight>();
  /** What was last read or written of each lock object. */
  const last = new Map<string, LockRecord>();
  let own = "";
  let over = false;

  const tell = () => sink.setLeader(sights.size > 0 && [...sights.values()].every(({ mine }) => mine));
  const note = (resource: string, mine: boolean, durationMs = DEFAULT_LEASE_MS) => {
    if (over) return;
    sights.get(resource)?.timer.cancel();
    const leaseMs = bounded(durationMs);
    sights.set(resource, { mine, timer: clock.after(leaseMs, () => expire(resource, mine, leaseMs)) });
    tell();
  };
  // mine => not mine  when the lease is over without a renewal: a leader that is silent counts as lost
  // not mine => forgotten  when nobody has touched the lock for as long: the operator has another kind of lock now
  const expire = (resource: string, mine: boolean, leaseMs: number) => {
    if (mine) note(resource, false, leaseMs);
    else sights.delete(resource);
    tell();
  };
  const noteRecord = (resource: string, record: LockRecord) => {
    const { holder, durationMs } = record;
    if (holder !== undefined) last.set(resource, record);
    if (durationMs !== undefined && !over) sink.sawLease?.(bounded(durationMs));
  };
  const seen = (resource: string, record: LockRecord) => {
    const { holder, durationMs } = record;
    noteRecord(resource, record);
    // What it holds itself is no news, and reading it renews nothing.
    if (holder !== undefined && (own === "" || holder !== own)) note(resource, false, durationMs);
  };
  // Locks that say no time are renewed by naming the holder again.
  const isRenewal = (sent: LockRecord, before: LockRecord | undefined) => {
    if (before === undefined || sent.holder !== before.holder) return true;
    if (sent.renewedMs !== undefined) return sent.renewedMs !== before.renewedMs;
    return before.renewedMs === undefined && sent.holder === own;
  };

  return {
    seen,
    written(resource, sent, got) {
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
    gone(resource) {
      last.delete(resource);
      if (sights.has(resource)) note(resource, false);
    },
    conflict(resource, { holder }) {
      // Of another elector in the pod, which does not lead, it says nothing. Only a leader releases (its holder is "").
      if (sights.has(resource) && (holder === own || holder === "")) note(resource, false);
    },
    end() {
      if (over) return;
      over = true;
      for (const { timer } of sights.values()) timer.cancel();
      sights.clear();
      tell();
    },
  };
}

function bounded(durationMs: number): number {
  return Math.min(Math.max(durationMs, 0), MAX_LEASE_MS);
}
