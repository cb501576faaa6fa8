// Requests for one object where locks live: the subset's own lock, which is renamed in path and body and
// translated back, and creates, whose body has the name.
import { type Rename, readStatusMessage } from "../../../kube/codec/codec.ts";
import { StatusError } from "../../../kube/status.ts";
import type { Snapshot } from "../../../route/snapshot.ts";
import {
  askReadable,
  askUncompressed,
  type Call,
  type Handler,
  type ResourceCall,
  readableEncoding,
  withTarget,
} from "../../call/call.ts";
import type { Reply } from "../../http/handler.ts";
import type { AccessTracker } from "./access-tracker.ts";
import type { LeaderTracker } from "./leader-tracker.ts";
import { type LockBody, requestBody, translatedObject, wholeReply } from "./lock-body.ts";
import { isOnlySubset, renamePath, touchByName } from "./lock-names.ts";
import { type LockRecord, NO_RECORD, readLockRecord } from "./lock-record.ts";

/** A request, with the lock as the snapshot at its beginning has it. */
export interface LockCall {
  readonly call: ResourceCall;
  readonly snapshot: Snapshot;
  readonly next: Handler;
  /** From the operator's name to the name upstream; undefined if the lock keeps its name. */
  readonly rename: Rename | undefined;
  readonly leader: LeaderTracker;
  /** Undefined where nothing is renamed. */
  readonly access: AccessTracker | undefined;
}

export async function createObject(lock: LockCall): Promise<Reply> {
  const { call, snapshot, next } = lock;
  // An app without subsets has nothing to hide: its unreadable bodies pass.
  const body = await requestBody(call, !isOnlySubset(snapshot));
  const touch = touchByName(snapshot, body.name(), "own");
  if (touch?.kind === "other-subset") throw foreignLock(call, touch.name);
  if (touch === undefined) return next({ ...call, body: body.bytes });
  return sendOwn(lock, body);
}

export async function ownLock(lock: LockCall): Promise<Reply> {
  const { verb } = lock.call.info;
  const isWrite = verb === "update" || verb === "patch";
  return sendOwn(lock, isWrite ? await requestBody(lock.call, lock.rename !== undefined) : undefined);
}

async function sendOwn(lock: LockCall, body: LockBody | undefined): Promise<Reply> {
  const { call, rename } = lock;
  const sent = rename === undefined ? body?.bytes : body?.renamed(rename);
  const asked = { ...call, body: sent ?? call.body };
  const reply = await sendMarked(lock, rename === undefined ? asked : translatedPath(asked, rename));
  const isCounted = call.info.subresource === "" && !call.info.query.get("dryRun");
  try {
    const answer = await translatedObject(reply, rename);
    if (isCounted) track(lock, body, answer);
    return answer;
  } catch (error) {
    // The write has happened, even if its answer cannot be read.
    if (isCounted) track(lock, body, { ...reply, body: null });
    throw error;
  }
}

/** Sends a request for the own lock and marks its record, so that later layers let it pass. */
export async function sendMarked({ call, next, access }: LockCall, sent: Call): Promise<Reply> {
  call.record.lock = true;
  const reply = await next(sent);
  if (access === undefined) return reply;
  if (reply.status !== 403) {
    access.answered(call.info, reply.status, "");
    return reply;
  }
  const refusal = await wholeReply(reply);
  access.answered(call.info, refusal.status, messageOf(refusal));
  return refusal;
}

function messageOf(refusal: Reply): string {
  const encoding = readableEncoding(refusal);
  return encoding !== undefined && refusal.body instanceof Uint8Array ? readStatusMessage(encoding, refusal.body) : "";
}

// A request that failed in another way (403, 429, 5xx, no answer) leaves the lock to its holder.
function track({ call: { info }, leader }: LockCall, body: LockBody | undefined, reply: Reply): void {
  const { verb, resource } = info;
  const isGood = reply.status === 200 || reply.status === 201;
  if (reply.status === 404 || (isGood && verb === "delete")) leader.gone(resource);
  else if (reply.status === 409) leader.conflict(resource, body?.record(resource) ?? NO_RECORD);
  else if (isGood && body !== undefined) leader.written(resource, body.record(resource), recordInReply(reply, resource));
  else if (isGood) leader.seen(resource, recordInReply(reply, resource));
}

function recordInReply(reply: Reply, resource: string): LockRecord {
  const encoding = readableEncoding(reply);
  return encoding !== undefined && reply.body instanceof Uint8Array
    ? readLockRecord(encoding, resource, reply.body, true)
    : NO_RECORD;
}

/** The call with the lock's name upstream, and with a reply that can be translated. */
export function translatedPath(call: ResourceCall, rename: Rename | undefined): Call {
  if (rename === undefined || !call.info.nameInPath) return askReadable(call);
  const mark = call.target.indexOf("?");
  return withTarget(askUncompressed(call), renamePath(call.info, rename.to) + (mark < 0 ? "" : call.target.slice(mark)));
}

export function foreignLock(call: ResourceCall, name: string): StatusError {
  call.record.decision = "refused";
  call.record.reason = "other-subset-lock";
  const message = `ctrlmesh: ${call.info.verb} ${call.info.resource} "${name}": this is another subset's leader-election lock; use the operator's own lock name`;
  return new StatusError("Forbidden", message);
}
