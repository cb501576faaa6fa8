// Requests for one object where locks live: the subset's own lock, renamed in path and body and translated back, and creates,
// whose name only the body tells. Called by the election layer.
import { narrowAccept } from "../../kube/codec/media-type.ts";
import { type Rename, renameObject } from "../../kube/codec/rename.ts";
import type { Encoding } from "../../kube/codec/types.ts";
import { StatusError } from "../../kube/status.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { Call, Handler, Reply } from "./handler.ts";
import type { LeaderTracker } from "./leader-tracker.ts";
import {
  mediaType,
  readingRequest,
  readName,
  requestBody,
  requestEncoding,
  translatedObject,
  unreadableBody,
} from "./lock-body.ts";
import { holderOf } from "./lock-holder.ts";
import { renamePath, touchByName } from "./lock-names.ts";
import { withTarget } from "./query.ts";
import { readableEncoding } from "./readable-encoding.ts";
import type { ResourceCall } from "./resource-call.ts";

/** One request with what the snapshot of its beginning says about locks. */
export interface LockCall {
  readonly call: ResourceCall;
  readonly snapshot: Snapshot;
  readonly next: Handler;
  /** From the operator's name to ours; undefined for the default subset. */
  readonly rename: Rename | undefined;
}

export async function createObject(lock: LockCall, leader: LeaderTracker): Promise<Reply> {
  const { call, snapshot, next } = lock;
  const body = await requestBody(call);
  const encoding = requestEncoding(call, body);
  if (encoding === undefined) throw unreadableBody(call);
  const touch = touchByName(snapshot, readName(encoding, body), "own");
  if (touch?.kind === "foreign") throw foreignLock(call, touch.name);
  if (touch === undefined) return next({ ...call, body });
  return ownLock({ ...lock, call: { ...call, body } }, leader);
}

export async function ownLock({ call, next, rename }: LockCall, leader: LeaderTracker): Promise<Reply> {
  call.record.lock = true;
  const { info } = call;
  const isWrite = info.verb === "create" || info.verb === "update" || info.verb === "patch";
  const body = isWrite ? await requestBody(call) : call.body;
  const encoding = isWrite && body instanceof Uint8Array ? requestEncoding(call, body) : undefined;
  const sent = translatedPath({ ...call, body: renamedBody(call, body, encoding, rename) }, rename);
  const follows = info.subresource === "" && !info.query.get("dryRun");
  try {
    const reply = await translatedObject(await next(sent), rename);
    if (follows) track(leader, call, encoding, body, reply);
    return reply;
  } catch (error) {
    if (follows && isWrite) leader.lost();
    throw error;
  }
}

function track(
  leader: LeaderTracker,
  { info }: ResourceCall,
  encoding: Encoding | undefined,
  body: Call["body"],
  reply: Reply,
): void {
  const isGood = reply.status === 200 || reply.status === 201;
  const got = isGood ? holderInReply(reply, info.resource) : undefined;
  switch (info.verb) {
    case "create":
    case "update":
    case "patch": {
      const sent = encoding !== undefined && body instanceof Uint8Array ? holderOf(encoding, info.resource, body) : undefined;
      if (isGood) leader.written(sent, got);
      else leader.lost();
      break;
    }
    case "delete":
      if (isGood) leader.lost();
      break;
    default:
      leader.seen(got);
  }
}

function holderInReply(reply: Reply, resource: string): string | undefined {
  const encoding = readableEncoding(reply);
  return encoding !== undefined && reply.body instanceof Uint8Array ? holderOf(encoding, resource, reply.body) : undefined;
}

export function translatedPath(call: ResourceCall, rename: Rename | undefined): Call {
  const asked: Call = {
    ...call,
    headers: { ...call.headers, accept: narrowAccept(call.headers.accept), "accept-encoding": "identity" },
  };
  if (rename === undefined || !call.info.nameInPath) return asked;
  const mark = call.target.indexOf("?");
  return withTarget(asked, renamePath(call.info, rename.to) + (mark < 0 ? "" : call.target.slice(mark)));
}

function renamedBody(
  call: ResourceCall,
  body: Call["body"],
  encoding: Encoding | undefined,
  rename: Rename | undefined,
): Call["body"] {
  if (rename === undefined || !(body instanceof Uint8Array) || body.length === 0) return body;
  // A JSON Patch is a list of operations; none of them can change a name.
  if (encoding === undefined && mediaType(call) === "application/json-patch+json") return body;
  if (encoding === undefined) throw unreadableBody(call);
  return readingRequest(() => renameObject(encoding, body, rename));
}

/** The refusal of another subset's lock. */
export function foreignLock(call: ResourceCall, name: string): StatusError {
  call.record.decision = "refused";
  const message = `ctrlmesh: ${call.info.verb} ${call.info.resource} "${name}": this is another subset's leader-election lock; use the operator's own lock name`;
  return new StatusError("Forbidden", message);
}
