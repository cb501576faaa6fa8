// Holds back an operator's writes after its lock got another name upstream: the operator may still believe
// that it leads by the old lock, while another pod leads by the new one. Invariant: while the gate is closed,
// no write of a leader reaches the API server, except writes of events and of single leases. The election
// layer moves the gate; the layer next to the wire asks it.
import type { Clock, Timer } from "../../../base/clock.ts";
import { StatusError } from "../../../kube/status.ts";
import { isAct } from "../../../route/decide.ts";
import { lockNameFor } from "../../../route/lock.ts";
import type { Snapshot } from "../../../route/snapshot.ts";
import { type Call, isResourceCall, type Layer, type ResourceCall } from "../../call/call.ts";
import type { LockMemory } from "../../session/memory.ts";
import { DEFAULT_LEASE_MS } from "./leader-tracker.ts";

/** The part of a snapshot that says which lock is the pod's. */
type Lock = Pick<Snapshot, "lockName" | "subset">;

export interface LockGate {
  /** A snapshot came into force. */
  changed(now: Lock, before: Lock | undefined): void;
  /** A renewal of the lock holds for so long. */
  sawLease(leaseMs: number): void;
  /** This pod leads by the lock's present name. */
  led(): void;
  /** The present name of the lock, while writes are held back. */
  readonly closedFor: string | undefined;
}

type State =
  | { readonly kind: "open" }
  /** `lock` is the present name, `untilMs` the end of the lease before. */
  | { readonly kind: "closed"; readonly lock: string; readonly untilMs: number };

type GateEvent =
  | { readonly kind: "renamed"; readonly lock: string; readonly untilMs: number }
  | { readonly kind: "led" }
  | { readonly kind: "lease over" };

const OPEN: State = { kind: "open" };

function step(before: State, event: GateEvent): State {
  switch (event.kind) {
    // open => closed     the lock's name changes, or the process before this one left the gate closed
    // closed => closed   the name changes again: until the later of both ends
    case "renamed":
      return { ...event, kind: "closed", untilMs: Math.max(event.untilMs, before.kind === "closed" ? before.untilMs : 0) };
    // closed => open     this pod leads by the new name
    case "led":
    // closed => open     every elector takes the old lease for ended
    case "lease over":
      return OPEN;
    default:
      return event satisfies never;
  }
}

/**
 * Makes an open gate.
 * @param memory keeps the gate's state for the next process of the proxy
 */
export function createLockGate(clock: Clock, memory: LockMemory): LockGate {
  let state: State = OPEN;
  let timer: Timer | undefined;
  /** The longest lease that was seen of the lock in force; undefined if none was. */
  let longestLeaseMs: number | undefined;

  const on = (event: GateEvent) => {
    state = step(state, event);
    timer?.cancel();
    if (state.kind === "open") {
      memory.keepGate(undefined);
      return;
    }
    const leaseMs = state.untilMs - clock.monotonicMs();
    memory.keepGate({ lock: state.lock, leaseMs });
    timer = clock.after(leaseMs, () => on({ kind: "lease over" }));
  };
  const setLease = (leaseMs: number | undefined) => {
    longestLeaseMs = leaseMs;
    // The default needs no memory, so that most locks cost no write to the disk.
    memory.keepLease(leaseMs !== undefined && leaseMs > DEFAULT_LEASE_MS ? leaseMs : undefined);
  };
  return {
    changed(now, before) {
      const stored = before === undefined ? memory.before : undefined;
      const last = before ?? stored;
      if (last === undefined) return;
      if (stored !== undefined) longestLeaseMs = stored.longestLeaseMs;
      const lock = nameIn(now, last);
      const isOther = nameIn(last, now) !== lock;
      // How much of a stored lease is over is not known, since clocks may have been set: it lasts as long
      // again.
      const storedMs = stored?.closed?.leaseMs ?? 0;
      const leaseMs = Math.max(isOther ? (longestLeaseMs ?? DEFAULT_LEASE_MS) : 0, storedMs);
      if (isOther || stored?.closed !== undefined) on({ kind: "renamed", lock, untilMs: clock.monotonicMs() + leaseMs });
      if (isOther) setLease(undefined);
    },
    sawLease(leaseMs) {
      if (longestLeaseMs === undefined || leaseMs > longestLeaseMs) setLease(leaseMs);
    },
    led() {
      if (state.kind === "closed") on({ kind: "led" });
    },
    get closedFor() {
      return state.kind === "closed" ? state.lock : undefined;
    },
  };
}

/**
 * The layer that refuses a leader's writes while the gate is closed. It throws StatusError
 * ServiceUnavailable.
 */
export function lockGate(gate: Pick<LockGate, "closedFor">): Layer {
  return (next) => (call) => {
    const lock = gate.closedFor;
    if (lock !== undefined && !call.record.lock && isResourceCall(call) && isLeaderAct(call)) throw heldBack(call, lock);
    return next(call);
  };
}

// Without a lock in the app, the lock upstream has the operator's own name, which the other snapshot says.
function nameIn(lock: Lock, other: Lock): string {
  return lock.lockName === "" ? other.lockName : lockNameFor(lock.lockName, lock.subset);
}

// Events report an election. Other leases belong to other electors, which would end the operator if they
// lost them.
function isLeaderAct({ info }: ResourceCall): boolean {
  const { verb, group, resource } = info;
  if (!isAct(info)) return false;
  if (resource === "events") return group !== "" && group !== "events.k8s.io";
  return resource !== "leases" || group !== "coordination.k8s.io" || verb === "deletecollection";
}

function heldBack(call: Call, lock: string): StatusError {
  call.record.decision = "fenced";
  call.record.reason = "lock-changed";
  const message = `ctrlmesh: the lock of this pod is called "${lock}" upstream now: it writes nothing until it leads by that, or until the lease of the lock before is over`;
  return new StatusError("ServiceUnavailable", message, { retryAfterSeconds: 1 });
}
