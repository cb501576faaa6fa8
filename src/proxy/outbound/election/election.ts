// Gives each subset a leader-election lock of its own: NAME is NAME---SUBSET upstream, and the operator never
// sees that. Invariants: only the app's own lock is renamed, and another subset's lock is neither shown nor
// reachable; a request that cannot be translated is refused; a request keeps one name of the lock to its end.
import type { ProcessContext } from "../../../base/process-context.ts";
import { lockNameFor } from "../../../mesh/ownership/lock.ts";
import type { Snapshot } from "../../../mesh/ownership/snapshot.ts";
import { isResourceCall, type Layer } from "../../call/call.ts";
import { endBySnapshot, endWhen } from "../../filter/end-when.ts";
import { asSource } from "../../http/byte-stream.ts";
import type { Reply } from "../../http/handler.ts";
import type { Report, Session } from "../../session/session.ts";
import { type AccessTracker, createAccessTracker } from "./access-tracker.ts";
import { createLeaderTracker, type LeaderTracker } from "./leader-tracker.ts";
import { checkCandidate } from "./lease-candidates.ts";
import { collection, namedWatch, selectedLock } from "./lock-collection.ts";
import type { LockGate } from "./lock-gate.ts";
import { isOnlySubset, type LockTouch, mayShowLocks, touchOf } from "./lock-names.ts";
import { createObject, foreignLock, type LockCall, ownLock } from "./lock-object.ts";
import { createUnnamedLocks } from "./unnamed-lock.ts";

export interface ElectionDeps extends Pick<ProcessContext, "clock" | "log"> {
  readonly session: Session;
  readonly report: Report;
  readonly gate: LockGate;
}

/** The trackers of the lock under one name upstream. */
interface LockInForce {
  readonly name: string;
  readonly leader: LeaderTracker;
  /** Undefined where the lock keeps the operator's name. */
  readonly access: AccessTracker | undefined;
}

export function election({ session, report, gate, clock, log }: ElectionDeps): Layer {
  const leading = {
    setLeader(leads: boolean) {
      if (leads) gate.led();
      report("leader", leads);
    },
    sawLease: gate.sawLease,
  };
  const explainRefusal = createUnnamedLocks(report, clock, log);
  let inForce: LockInForce | undefined;
  const lockOf = (snapshot: Snapshot): LockInForce => {
    const name = upstreamName(snapshot);
    if (inForce?.name === name) return inForce;
    const access = name === snapshot.lockName ? undefined : createAccessTracker(name, report, log);
    inForce = { name, leader: createLeaderTracker(leading, clock), access };
    return inForce;
  };
  session.onChange(({ snapshot }, before) => {
    gate.changed(snapshot, before?.snapshot);
    if (inForce === undefined || inForce.name === upstreamName(snapshot)) return;
    inForce.leader.end();
    inForce.access?.end();
    inForce = undefined;
  });
  return (next) => async (call) => {
    const snapshot = session.current?.snapshot;
    if (snapshot === undefined || !isResourceCall(call)) return next(call);
    const { info } = call;
    const touch = touchOf(snapshot, info);
    if (touch.kind === "none") {
      checkCandidate(call, snapshot);
      const isFree = info.verb === "watch" && mayShowLocks(snapshot, info) && isOnlySubset(snapshot);
      if (isFree) return until((now) => !isOnlySubset(now), await next(call), session);
      try {
        return await next(call);
      } catch (error) {
        throw explainRefusal(error, call, snapshot);
      }
    }
    const { name, leader, access } = lockOf(snapshot);
    const rename = name === snapshot.lockName ? undefined : { from: snapshot.lockName, to: name };
    const reply = await dispatch(touch, { call, snapshot, next, rename, leader, access });
    // A pod that moves to another subset has another lock: its watches of the old one end.
    return info.verb === "watch" ? until((now) => upstreamName(now) !== name, reply, session) : reply;
  };
}

function dispatch(touch: Exclude<LockTouch, { kind: "none" }>, lock: LockCall): Promise<Reply> {
  switch (touch.kind) {
    case "other-subset":
      throw foreignLock(lock.call, touch.name);
    case "own":
      return lock.call.info.verb === "watch" ? namedWatch(lock) : ownLock(lock);
    case "create":
      return createObject(lock);
    case "selected":
      return selectedLock(lock);
    case "collection":
      return collection(lock, touch.whole);
    default:
      return touch satisfies never;
  }
}

function until(isOver: (snapshot: Snapshot) => boolean, reply: Reply, session: Session): Reply {
  if (reply.status !== 200 || reply.body === null) return reply;
  const end = endBySnapshot(session, ({ snapshot }) => isOver(snapshot));
  return { ...reply, body: endWhen(asSource(reply.body), end, "end") };
}

function upstreamName({ lockName, subset }: Snapshot): string {
  return lockNameFor(lockName, subset);
}
