// Whether this pod leads, told from the lock traffic that passes. Invariants: it leads from its own successful renewal until a
// release, the sight of another holder, the loss of the lock, or the end of the lease, whichever comes first; a renewal that
// failed for another reason only lets the lease run on. With client-go's multilocks, which are two objects, it leads while it
// holds both. Made by the election layer, one for each name that the lock has upstream.
import type { Clock, Timer } from "../../../base/clock.ts";
import type { LeaderSink } from "../../session/session.ts";
import type { LockRecord } from "./lock-record.ts";

export interface LeaderTracker {
  /** A write of the lock succeeded: what was in the request, and what in the answer. */
  written(resource: string, sent: LockRecord, got: LockRecord): void;
  /** The lock is not there, or somebody else has written to it. */
  lost(resource: string): void;
  /** The lock was read. */
  seen(resource: string, got: LockRecord): void;
  /** The pod has another lock now. Nobody leads, and whatever is still under way changes nothing. */
  end(): void;
}

/** client-go's and controller-runtime's default, for locks that do not say how long a renewal holds. */
const DEFAULT_LEASE_MS = 15_000;
/** What a lock may say: a timer takes no more than 24 days. */
const MAX_LEASE_MS = 3_600_000;

/** What was last seen of one lock object, believed for as long as a lease. */
interface Sight {
  readonly mine: boolean;
  readonly timer: Timer;
}

export function createLeaderTracker(sink: Pick<LeaderSink, "setLeader">, clock: Clock): LeaderTracker {
  const sights = new Map<string, Sight>();
  let own = "";
  let over = false;

  const tell = () => sink.setLeader(sights.size > 0 && [...sights.values()].every(({ mine }) => mine));
  const note = (resource: string, mine: boolean, durationMs = DEFAULT_LEASE_MS) => {
    if (over) return;
    sights.get(resource)?.timer.cancel();
    const leaseMs = Math.min(Math.max(durationMs, 0), MAX_LEASE_MS);
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
  const seen = (resource: string, { holder, durationMs }: LockRecord) => {
    // What it holds itself is no news, and reading it renews nothing.
    if (holder !== undefined && (own === "" || holder !== own)) note(resource, false, durationMs);
  };

  return {
    seen,
    written(resource, sent, got) {
      if (over) return;
      if (sent.holder === undefined) {
        seen(resource, got);
        return;
      }
      own = sent.holder;
      const holder = got.holder ?? sent.holder;
      note(resource, own !== "" && holder === own, got.durationMs ?? sent.durationMs);
    },
    lost: (resource) => note(resource, false),
    end() {
      if (over) return;
      over = true;
      for (const { timer } of sights.values()) timer.cancel();
      sights.clear();
      tell();
    },
  };
}
