// The layer that gives each subset a leader-election lock of its own: NAME is NAME---SUBSET upstream, and the operator never
// sees that. Invariants: only the app's own lock is renamed, in its own place; another subset's lock is neither shown nor
// reachable by name; what cannot be translated is refused. It marks lock traffic, which later layers let pass.
import { lockNameFor } from "../../route/lock.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { Enforced, LeaderSink, Session } from "../session/session.ts";
import { endBySnapshot, endWhen } from "../stream/end-when.ts";
import { asSource } from "./byte-source.ts";
import type { Layer, Reply } from "./handler.ts";
import { createLeaderTracker, type LeaderTracker } from "./leader-tracker.ts";
import { collection, namedWatch, selectedLock } from "./lock-collection.ts";
import { type LockTouch, touchOf } from "./lock-names.ts";
import { createObject, foreignLock, type LockCall, ownLock } from "./lock-object.ts";
import { isResourceCall } from "./resource-call.ts";

export interface ElectionDeps {
  readonly session: Session & LeaderSink;
}

/** Makes the layer. */
export function election({ session }: ElectionDeps): Layer {
  const leader = createLeaderTracker(session);
  session.onChange((now, before) => {
    if (before !== undefined && upstreamName(now.snapshot) !== upstreamName(before.snapshot)) leader.lost();
  });
  return (next) => async (call) => {
    const snapshot = session.current?.snapshot;
    if (snapshot === undefined || !isResourceCall(call)) return next(call);
    const touch = touchOf(snapshot, call.info);
    if (touch.kind === "none") return next(call);
    const to = upstreamName(snapshot);
    const rename = to === snapshot.lockName ? undefined : { from: snapshot.lockName, to };
    const lock: LockCall = { call, snapshot, next, rename };
    const reply = await dispatch(touch, lock, leader);
    return call.info.verb === "watch" ? whileLockIs(to, reply, session) : reply;
  };
}

function dispatch(touch: Exclude<LockTouch, { kind: "none" }>, lock: LockCall, leader: LeaderTracker): Promise<Reply> {
  switch (touch.kind) {
    case "foreign":
      throw foreignLock(lock.call, touch.name);
    case "own":
      return lock.call.info.verb === "watch" ? namedWatch(lock) : ownLock(lock, leader);
    case "create":
      return createObject(lock, leader);
    case "selected":
      return selectedLock(lock);
    case "collection":
      return collection(lock, touch.whole);
    default:
      return touch satisfies never;
  }
}

// A pod that comes into another subset has another lock: what it watches of the old one ends.
function whileLockIs(name: string, reply: Reply, session: Session): Reply {
  if (reply.status !== 200 || reply.body === null) return reply;
  const isOver = ({ snapshot }: Enforced) => upstreamName(snapshot) !== name;
  return { ...reply, body: endWhen(asSource(reply.body), endBySnapshot(session, isOver), "end") };
}

function upstreamName({ lockName, subset }: Snapshot): string {
  return lockNameFor(lockName, subset);
}
