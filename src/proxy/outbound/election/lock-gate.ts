// Holds back an operator's writes after its lock got another name upstream: the operator may still believe
// that it leads by the old lock, while another pod leads by the new one. Invariant: while the gate is closed,
// no write of a leader reaches the API server, except writes of events and of single leases.
import type { Clock, Timer } from "../../../base/clock.ts";
import { StatusError } from "../../../kube/status.ts";
import { isAct } from "../../../mesh/ownership/decide.ts";
import { lockNameFor } from "../../../mesh/ownership/lock.ts";
import type { Snapshot } from "../../../mesh/ownership/snapshot.ts";
import { type Call, isResourceCall, type Layer, noteDecision, type ResourceCall } from "../../call/call.ts";
import type { LockMemory } from "../../session/memory.ts";
import { DEFAULT_LEASE_MS } from "./leader-tracker.ts";

type Lock = Pick<Snapshot, "lockName" | "subset">;

export type LockGate = ReturnType<typeof createLockGate>;

/** @param memory keeps the gate's state for the next process of the proxy */
export function createLockGate(clock: Clock, memory: LockMemory) {
  /** `lock` is the present name, `untilMs` the end of the lease before. Undefined: the gate is open. */
  let closed: { readonly lock: string; readonly untilMs: number } | undefined;
  let timer: Timer | undefined;
  /** The longest lease that was seen of the lock in force; undefined if none was. */
  let longestLeaseMs: number | undefined;

  const open = () => {
    closed = undefined;
    timer?.cancel();
    memory.keepGate(undefined);
  };
  const close = (lock: string, leaseMs: number) => {
    const nowMs = clock.monotonicMs();
    // If the name changes again, the gate stays closed until both leases are over.
    closed = { lock, untilMs: Math.max(nowMs + leaseMs, closed?.untilMs ?? 0) };
    timer?.cancel();
    memory.keepGate({ lock, leaseMs: closed.untilMs - nowMs });
    timer = clock.after(closed.untilMs - nowMs, open);
  };
  const setLease = (leaseMs: number | undefined) => {
    longestLeaseMs = leaseMs;
    // The default needs no memory, so that most locks cost no write to the disk.
    memory.keepLease(leaseMs !== undefined && leaseMs > DEFAULT_LEASE_MS ? leaseMs : undefined);
  };
  return {
    changed(now: Lock, before: Lock | undefined): void {
      const stored = before === undefined ? memory.before : undefined;
      const last = before ?? stored;
      if (last === undefined) return;
      if (stored !== undefined) longestLeaseMs = stored.longestLeaseMs;
      const lock = nameIn(now, last);
      const isOther = nameIn(last, now) !== lock;
      // A stored lease counts in full: clocks may have been set meanwhile.
      const storedMs = stored?.closed?.leaseMs ?? 0;
      const leaseMs = Math.max(isOther ? (longestLeaseMs ?? DEFAULT_LEASE_MS) : 0, storedMs);
      if (isOther || stored?.closed !== undefined) close(lock, leaseMs);
      if (isOther) setLease(undefined);
    },
    /** A record of the lock has this duration. */
    sawLease(leaseMs: number): void {
      if (longestLeaseMs === undefined || leaseMs > longestLeaseMs) setLease(leaseMs);
    },
    /** This pod has acquired the lock by its present name. */
    led(): void {
      if (closed !== undefined) open();
    },
    /** The present name of the lock, while writes are held back. */
    get closedFor(): string | undefined {
      return closed?.lock;
    },
  };
}

export function lockGate(gate: Pick<LockGate, "closedFor">): Layer {
  return (next) => (call) => {
    checkGate(call, gate);
    return next(call);
  };
}

/** @throws StatusError ServiceUnavailable for a write of a leader while the gate is closed */
export function checkGate(call: Call, { closedFor: lock }: Pick<LockGate, "closedFor">): void {
  if (lock !== undefined && !call.record.lock && isResourceCall(call) && isLeaderAct(call)) throw heldBack(call, lock);
}

// If this snapshot names no lock, the lock upstream has the operator's own name, as the other snapshot says.
function nameIn(lock: Lock, other: Lock): string {
  return lock.lockName === "" ? other.lockName : lockNameFor(lock.lockName, lock.subset);
}

// Events and leases pass: an operator stops if another of its electors cannot renew its lease.
function isLeaderAct({ info }: ResourceCall): boolean {
  const { verb, group, resource } = info;
  if (!isAct(info)) return false;
  if (resource === "events") return group !== "" && group !== "events.k8s.io";
  return resource !== "leases" || group !== "coordination.k8s.io" || verb === "deletecollection";
}

function heldBack(call: Call, lock: string): StatusError {
  noteDecision(call.record, "fenced", "lock-changed");
  const message = `ctrlmesh: the lock of this pod is called "${lock}" upstream now: it writes nothing until it leads by that, or until the lease of the lock before is over`;
  return new StatusError("ServiceUnavailable", message, { retryAfterSeconds: 1 });
}
