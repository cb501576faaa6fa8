// The layer that gives each subset a leader-election lock of its own: NAME is NAME---SUBSET upstream, and the operator never
// sees that. Invariants: only the app's own lock is renamed, in its own place; another subset's lock is neither shown nor
// reachable by name; what cannot be translated is refused; a request keeps the name of its beginning to its end; and a pod whose
// lock has come to another name writes nothing until it leads again or cannot (lock-gate). It marks lock traffic, which later
// layers let pass.
import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import { lockNameFor } from "../../../route/lock.ts";
import type { Snapshot } from "../../../route/snapshot.ts";
import { endBySnapshot, endWhen } from "../../filter/end-when.ts";
import { asSource } from "../../http/byte-source.ts";
import type { Layer, Reply } from "../../http/handler.ts";
import { isResourceCall } from "../../http/resource-call.ts";
import type { LeaderSink, Session } from "../../session/session.ts";
import { createLeaderTracker, type LeaderTracker } from "./leader-tracker.ts";
import { collection, namedWatch, selectedLock } from "./lock-collection.ts";
import { createLockGate, type LockGate } from "./lock-gate.ts";
import { isOnlySubset, type LockTouch, mayShowLocks, touchOf } from "./lock-names.ts";
import { createObject, foreignLock, type LockCall, ownLock } from "./lock-object.ts";
import { createLockReviewer, type LockReviewer } from "./lock-review.ts";

export interface ElectionDeps {
  readonly session: Session & LeaderSink;
  readonly clock: Clock;
  readonly log: Logger;
  /** Shared with layers that let writes wait; default: one of its own, which a restart forgets. */
  readonly gate?: LockGate;
}

/** What is known of the lock under one name upstream. */
interface LockInForce {
  readonly name: string;
  readonly leader: LeaderTracker;
  readonly review: LockReviewer | undefined;
}

/** Makes the layer. */
export function election({ session, clock, log, gate = createLockGate(clock) }: ElectionDeps): Layer {
  const leading = {
    setLeader(leads: boolean) {
      if (leads) gate.led();
      session.setLeader(leads);
    },
    sawLease: gate.sawLease,
  };
  let inForce: LockInForce | undefined;
  const lockOf = (snapshot: Snapshot): LockInForce => {
    const name = upstreamName(snapshot);
    if (inForce?.name === name) return inForce;
    const review = name === snapshot.lockName ? undefined : createLockReviewer({ lockName: name, sink: session, clock, log });
    inForce = { name, leader: createLeaderTracker(leading, clock), review };
    return inForce;
  };
  session.onChange(({ snapshot }, before) => {
    gate.changed(snapshot, before?.snapshot);
    if (inForce === undefined || inForce.name === upstreamName(snapshot)) return;
    inForce.leader.end();
    inForce.review?.end();
    inForce = undefined;
  });
  return (inner) => {
    const next = gate.around(inner);
    return async (call) => {
      const snapshot = session.current?.snapshot;
      if (snapshot === undefined || !isResourceCall(call)) return next(call);
      const { info } = call;
      const touch = touchOf(snapshot, info);
      if (touch.kind === "none") {
        const isFree = info.verb === "watch" && mayShowLocks(snapshot, info) && isOnlySubset(snapshot);
        return isFree ? until((now) => !isOnlySubset(now), await next(call), session) : next(call);
      }
      const { name, leader, review } = lockOf(snapshot);
      const rename = name === snapshot.lockName ? undefined : { from: snapshot.lockName, to: name };
      const reply = await dispatch(touch, { call, snapshot, next, rename, leader, review });
      // A pod that comes into another subset has another lock: what it watches of the old one ends.
      return info.verb === "watch" ? until((now) => upstreamName(now) !== name, reply, session) : reply;
    };
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
