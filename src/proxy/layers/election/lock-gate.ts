// Holds up the writes of a pod whose lock has another name upstream than before. Its operator may still believe that it leads,
// by the lease that it had, while another pod leads by the lock that counts now: both would act. Invariants: it is closed in the
// tick in which the name changes, and open again when this pod has come to lead by the new name or when the old lease is over,
// which every elector takes for the end of its lead; what is no act of a leader passes. Every write is judged in the tick in which
// the layers hand it on to the API server: by `around`, and again by `check` in the layers behind that let it wait. One that only
// waits for a connection there is under way. Open, it costs one comparison a call. Made by the election layer, or for it and
// for the layers that let writes wait.
//
// open => closed         the name upstream changes
// open => closed         the process starts, and the one before left it closed, or had a lock of another name
// closed => closed       it changes again: until the later of the two ends
// closed => open         `led()`, or the lease is over. How much of it was over when the process ended is not known: clocks may have
//                        been set meanwhile. So it lasts as long again from the first routes on.
//
// A lease is taken for the longest that was seen of the lock, by this process or the ones before, else for the default.
import type { Clock, Timer } from "../../../base/clock.ts";
import { StatusError } from "../../../kube/status.ts";
import { isAct } from "../../../route/decide.ts";
import { lockNameFor } from "../../../route/lock.ts";
import type { Snapshot } from "../../../route/snapshot.ts";
import type { Call, Handler } from "../../http/handler.ts";
import { isResourceCall, type ResourceCall } from "../../http/resource-call.ts";
import type { ClosedGate, GateKeeper } from "../../session/session.ts";
import { DEFAULT_LEASE_MS } from "./leader-tracker.ts";

/** What of the routes says which lock is the pod's. */
type Lock = Pick<Snapshot, "lockName" | "subset">;

export interface LockGate {
  /** Routes have come. */
  changed(now: Lock, before: Lock | undefined): void;
  /** For how long a renewal of the lock in force was said to hold. */
  sawLease(leaseMs: number): void;
  /** This pod leads by the name in force. */
  led(): void;
  /** To be called in the tick in which a write goes on that has waited. @throws StatusError ServiceUnavailable */
  check(call: Call): void;
  /** The handler, but for writes while the gate is closed. @throws StatusError ServiceUnavailable */
  around(next: Handler): Handler;
}

/** @param keeper where the gate's state outlives the process; default: nowhere */
export function createLockGate(clock: Clock, keeper?: GateKeeper): LockGate {
  let closed: ClosedGate | undefined;
  let untilMs = 0;
  let timer: Timer | undefined;
  /** Of the lock in force. */
  let longestLeaseMs: number | undefined;

  const set = (state: ClosedGate | undefined) => {
    timer?.cancel();
    timer = undefined;
    closed = state;
    keeper?.keepGate(state);
  };
  const close = (lock: string, leaseMs: number) => {
    untilMs = Math.max(closed === undefined ? 0 : untilMs, clock.monotonicMs() + leaseMs);
    const remainingMs = untilMs - clock.monotonicMs();
    set({ lock, leaseMs: remainingMs });
    timer = clock.after(remainingMs, () => set(undefined));
  };
  const setLease = (leaseMs: number | undefined) => {
    longestLeaseMs = leaseMs;
    // The default needs no memory, and most locks no write to the disk.
    keeper?.keepLease(leaseMs !== undefined && leaseMs > DEFAULT_LEASE_MS ? leaseMs : undefined);
  };
  const check = (call: Call) => {
    if (closed === undefined || call.record.lock || !isResourceCall(call) || !isLeaderAct(call)) return;
    throw heldUp(call, closed);
  };
  return {
    changed(now, before) {
      const left = before === undefined ? keeper?.lockBefore : undefined;
      const last = before ?? left;
      if (last === undefined) return;
      if (left !== undefined) longestLeaseMs = left.longestLeaseMs;
      const name = nameIn(now, last);
      const isOther = nameIn(last, now) !== name;
      const leaseMs = isOther ? (longestLeaseMs ?? DEFAULT_LEASE_MS) : 0;
      if (isOther || left?.closed !== undefined) close(name, Math.max(leaseMs, left?.closed?.leaseMs ?? 0));
      if (isOther) setLease(undefined);
    },
    sawLease(leaseMs) {
      if (longestLeaseMs === undefined || leaseMs > longestLeaseMs) setLease(leaseMs);
    },
    led() {
      if (closed !== undefined) set(undefined);
    },
    check,
    around: (next) => (call) => {
      if (closed !== undefined) check(call);
      return next(call);
    },
  };
}

// Where the app names no lock, the operator's own name is the one upstream, which the other routes say.
function nameIn(routes: Lock, other: Lock): string {
  return routes.lockName === "" ? other.lockName : lockNameFor(routes.lockName, routes.subset);
}

// Events tell of an election, and other leases belong to other electors, which would end the operator if they lost them.
function isLeaderAct({ info }: ResourceCall): boolean {
  const { verb, group, resource } = info;
  if (!isAct(info)) return false;
  if (resource === "events") return group !== "" && group !== "events.k8s.io";
  return resource !== "leases" || group !== "coordination.k8s.io" || verb === "deletecollection";
}

function heldUp(call: Call, { lock }: ClosedGate): StatusError {
  call.record.decision = "fenced";
  call.record.reason = "lock-changed";
  const message = `ctrlmesh: the lock of this pod is called "${lock}" upstream now: it writes nothing until it leads by that, or until the lease of the lock before is over`;
  return new StatusError("ServiceUnavailable", message, { retryAfterSeconds: 1 });
}
