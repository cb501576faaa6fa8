// Holds up the writes of a pod whose lock has another name upstream than before. Its operator may still believe that it leads,
// by the lease that it had, while another pod leads by the lock that counts now: both would act. Invariants: it is closed in the
// tick in which the name changes, and open again when this pod has come to lead by the new name or when the old lease is over,
// which every elector takes for the end of its lead; what is no act of a leader passes. Open, it costs one comparison a call.
// After a restart of the proxy the stored routes are those before. Made by the election layer.
//
// open => closed         the name upstream changes
// closed => closed       it changes again: until the later of the two ends
// closed => open         `led()`, or `untilMs`
import type { Clock } from "../../../base/clock.ts";
import { StatusError } from "../../../kube/status.ts";
import { isReview } from "../../../route/decide.ts";
import { lockNameFor } from "../../../route/lock.ts";
import type { Snapshot } from "../../../route/snapshot.ts";
import type { Call, Handler } from "../handler.ts";
import { isResourceCall, type ResourceCall } from "../resource-call.ts";

export interface LockGate {
  /** Routes have come; `leaseMs` is how long the lease of the lock before may last. */
  changed(now: Snapshot, before: Snapshot | undefined, leaseMs: number): void;
  /** This pod leads by the name in force. */
  led(): void;
  /** The handler, but for writes while the gate is closed. @throws StatusError ServiceUnavailable */
  around(next: Handler): Handler;
}

interface Closed {
  readonly lock: string;
  readonly untilMs: number;
}

export function createLockGate(clock: Clock): LockGate {
  let closed: Closed | undefined;
  return {
    changed(now, before, leaseMs) {
      if (before === undefined || nameBefore(before, now) === nameNow(now, before)) return;
      closed = { lock: nameNow(now, before), untilMs: Math.max(closed?.untilMs ?? 0, clock.monotonicMs() + leaseMs) };
    },
    led() {
      closed = undefined;
    },
    around: (next) => (call) => {
      if (closed === undefined || call.record.lock || !isResourceCall(call) || !isAct(call)) return next(call);
      if (clock.monotonicMs() < closed.untilMs) throw heldUp(call, closed);
      closed = undefined;
      return next(call);
    },
  };
}

// Where the app names no lock, the operator's own name is the one upstream.
function nameNow(now: Snapshot, before: Snapshot): string {
  return now.lockName === "" ? before.lockName : lockNameFor(now.lockName, now.subset);
}

function nameBefore(before: Snapshot, now: Snapshot): string {
  return nameNow(before, now);
}

// Events tell of an election, and other leases belong to other electors, which would end the operator if they lost them.
function isAct({ info }: ResourceCall): boolean {
  const { verb, group, resource } = info;
  if (verb === "get" || verb === "list" || verb === "watch" || isReview(info)) return false;
  if (resource === "events") return group !== "" && group !== "events.k8s.io";
  return resource !== "leases" || group !== "coordination.k8s.io" || verb === "deletecollection";
}

function heldUp(call: Call, { lock }: Closed): StatusError {
  call.record.decision = "fenced";
  call.record.reason = "lock-changed";
  const message = `ctrlmesh: the lock of this pod is called "${lock}" upstream now: it writes nothing until it leads by that, or until the lease of the lock before is over`;
  return new StatusError("ServiceUnavailable", message, { retryAfterSeconds: 1 });
}
