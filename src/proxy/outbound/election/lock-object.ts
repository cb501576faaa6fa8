// Requests for one object where locks live: for the subset's own lock, which is renamed in path and body and
// translated back, and creates, whose body has the name.
import { type Encoding, type Rename, readObjectMeta, readStatusMessage, renameObject } from "../../../kube/codec/codec.ts";
import {
  APPLY_YAML_TYPE,
  JSON_TYPE,
  MERGE_PATCH_TYPE,
  mediaTypeOf,
  PROTOBUF_TYPE,
  STRATEGIC_MERGE_PATCH_TYPE,
} from "../../../kube/media-types.ts";
import type { ResourceInfo } from "../../../kube/request-info.ts";
import { StatusError } from "../../../kube/status.ts";
import type { Snapshot } from "../../../mesh/ownership/snapshot.ts";
import {
  askReadable,
  askUncompressed,
  type Call,
  type Handler,
  noteDecision,
  orBadRequest,
  type ResourceCall,
  readableEncoding,
  readBounded,
  withTarget,
} from "../../call/call.ts";
import { discardBody } from "../../http/byte-stream.ts";
import type { Reply } from "../../http/handler.ts";
import type { AccessTracker } from "./access-tracker.ts";
import type { LeaderTracker } from "./leader-tracker.ts";
import { isOnlySubset, renamePath, touchByName } from "./lock-names.ts";
import { type LockRecord, NO_RECORD, readLockRecord } from "./lock-record.ts";

/** A request, with the lock of the snapshot at its beginning. */
export interface LockCall {
  readonly call: ResourceCall;
  readonly snapshot: Snapshot;
  readonly next: Handler;
  /** From the operator's name to the name upstream; undefined if the lock keeps its name. */
  readonly rename: Rename | undefined;
  readonly leader: LeaderTracker;
  /** Undefined if the lock keeps its name. */
  readonly access: AccessTracker | undefined;
}

export async function createObject(lock: LockCall): Promise<Reply> {
  const { call, snapshot, next } = lock;
  // An app without subsets has nothing to hide: its unreadable bodies pass.
  const body = await requestBody(call, !isOnlySubset(snapshot));
  const touch = touchByName(snapshot, nameIn(body), "own");
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
  const asked = body === undefined ? call : { ...call, body: renamedIn(body, rename) };
  const reply = await sendMarked(lock, rename === undefined ? asked : translatedPath(asked, rename));
  const isCounted = call.info.subresource === "" && !call.info.query.get("dryRun");
  try {
    const answer = await translatedObject(reply, rename);
    if (isCounted) track(lock, body, answer);
    return answer;
  } catch (error) {
    // The write counts even if its answer cannot be read.
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
  else if (reply.status === 409) leader.conflict(resource, recordIn(body, info));
  else if (isGood && body !== undefined) leader.written(resource, recordIn(body, info), recordInReply(reply, resource));
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
  noteDecision(call.record, "refused", "other-subset-lock");
  const message = `ctrlmesh: ${call.info.verb} ${call.info.resource} "${name}": this is another subset's leader-election lock; use the operator's own lock name`;
  return new StatusError("Forbidden", message);
}

const MAX_LEASE_BYTES = 1024 * 1024;
/** The API server's own limit for requests: a ConfigMap or Endpoints may be no lock. */
const MAX_OBJECT_BYTES = 3 * 1024 * 1024;

interface LockBody {
  readonly bytes: Uint8Array;
  /** Undefined for a body that cannot be read and may pass. */
  readonly encoding: Encoding | undefined;
}

/** The encoding of each content type that can be read where locks live. */
const ENCODINGS: ReadonlyMap<string, Encoding> = new Map([
  ["", "json"], // the API server takes a missing type for JSON
  [JSON_TYPE, "json"],
  [MERGE_PATCH_TYPE, "json"],
  [STRATEGIC_MERGE_PATCH_TYPE, "json"],
  [APPLY_YAML_TYPE, "json"], // client-go, kube-rs and kubectl send JSON
  [PROTOBUF_TYPE, "protobuf"],
]);

/** @param needed false if a body that cannot be read may pass */
async function requestBody(call: ResourceCall, needed: boolean): Promise<LockBody> {
  const { verb, resource } = call.info;
  const maxBytes = resource === "leases" ? MAX_LEASE_BYTES : MAX_OBJECT_BYTES;
  const bytes = await readBounded(call.body, maxBytes, "RequestEntityTooLarge", `${verb} ${resource}: the body`);
  try {
    const type = mediaTypeOf(call.headers["content-type"]);
    const encoding = ENCODINGS.get(type);
    if (encoding === undefined) throw unreadable(call, `content type "${type}"`);
    if (type === APPLY_YAML_TYPE && !isJson(bytes)) throw unreadable(call, "YAML");
    if (!needed) nameIn({ bytes, encoding }); // throws if it cannot be read
    return { bytes, encoding };
  } catch (error) {
    if (needed) throw error;
    return { bytes, encoding: undefined };
  }
}

/** `metadata.name`; "" if the body does not say it. */
function nameIn({ bytes, encoding }: LockBody): string {
  return encoding === undefined ? "" : orBadRequest(() => readObjectMeta(encoding, bytes).name);
}

/** The bytes with the lock's name replaced; the same array if the body has another name. */
function renamedIn({ bytes, encoding }: LockBody, rename: Rename | undefined): Uint8Array {
  if (rename === undefined || encoding === undefined || bytes.length === 0) return bytes;
  return orBadRequest(() => renameObject(encoding, bytes, rename));
}

function recordIn(body: LockBody | undefined, { resource, verb }: ResourceInfo): LockRecord {
  if (body?.encoding === undefined) return NO_RECORD;
  return readLockRecord(body.encoding, resource, body.bytes, verb !== "patch");
}

function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(Buffer.from(bytes).toString("utf8"));
    return true;
  } catch {
    return false;
  }
}

function unreadable({ info: { verb, resource } }: ResourceCall, what: string): StatusError {
  const message = `ctrlmesh: ${verb} ${resource}: the name of a leader-election lock cannot be found in ${what}; send JSON or protobuf, and a patch as a merge or apply patch in JSON`;
  return new StatusError("UnsupportedMediaType", message);
}

export function backwards({ from, to }: Rename): Rename {
  return { from: to, to: from };
}

// A 403 also shows the name upstream: a Role has to allow that, and its author reads the operator's log.
function noted(rename: Rename, status: number): Rename {
  return status === 403 ? { ...rename, note: ` (ctrlmesh: upstream "${rename.from}")` } : rename;
}

function withBody(reply: Reply, body: Uint8Array): Reply {
  return { ...reply, headers: { ...reply.headers, "content-length": String(body.length) }, body };
}

export function unreadableReply(reply: Reply): StatusError {
  discardBody(reply.body);
  return new StatusError(
    "NotAcceptable",
    `ctrlmesh: the API server's reply cannot be translated (${String(reply.headers["content-type"] ?? "no content type")})`,
  );
}

/** The reply with its body read whole: every answer about one lock is small. */
async function wholeReply(reply: Reply): Promise<Reply & { readonly body: Uint8Array | null }> {
  if (reply.body === null) return { ...reply, body: null };
  const body = await readBounded(reply.body, MAX_OBJECT_BYTES, "InternalError", "the API server's answer about a lock");
  return { ...reply, body };
}

/** The reply about one lock, with the operator's name of it. */
export async function translatedObject(reply: Reply, rename: Rename | undefined): Promise<Reply> {
  const whole = await wholeReply(reply);
  if (whole.body === null || rename === undefined) return whole;
  const encoding = readableEncoding(whole);
  // An error that is not a Status (a load balancer's page) names no object.
  if (encoding === undefined && whole.status >= 400) return whole;
  if (encoding === undefined) throw unreadableReply(whole);
  return withBody(whole, renameObject(encoding, whole.body, noted(backwards(rename), whole.status)));
}
