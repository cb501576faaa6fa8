// Lists, watches and deletecollections where locks live: the subset's own lock appears under the operator's
// name, and other subsets' locks are hidden and out of reach. Invariant: only objects in the lock's namespace
// are renamed.
//
//                     by the lock's name           in the pod's namespace       over all namespaces
//   list, watch       asks for NAME---SUBSET and   hides others' locks;         hides others' locks in
//                     shows only that              renames the selector         the pod's namespace
//   deletecollection  asks for NAME---SUBSET       leases: 403; else excludes   passes: the API server
//                                                  the names in the routes      has no such request
//
// For an app without subsets (isOnlySubset) only the deletecollection of leases is refused.
import {
  createListFilter,
  type Encoding,
  elementRenamer,
  filterTableFrame,
  type ItemMeta,
  type Keep,
  type Rename,
  readFrame,
  renameFrame,
} from "../../../kube/codec/codec.ts";
import { StatusError } from "../../../kube/status.ts";
import { isForeignLock, lockNameFor } from "../../../mesh/ownership/lock.ts";
import { joinSelectors } from "../../../mesh/ownership/plan-query.ts";
import type { Snapshot } from "../../../mesh/ownership/snapshot.ts";
import { type Call, noteDecision, type ResourceCall, readableEncoding, withParameter } from "../../call/call.ts";
import { frameStream, listStream } from "../../filter/filtered-body.ts";
import { asSource, type ByteSource } from "../../http/byte-stream.ts";
import type { Reply } from "../../http/handler.ts";
import { renameSelector, type WholeSelector, wholeSelector, withoutForeignLocks } from "./lock-names.ts";
import { backwards, type LockCall, sendMarked, translatedObject, translatedPath, unreadableReply } from "./lock-object.ts";

/** Answers a request for the own lock by a field selector, with nothing but that lock. */
export async function selectedLock(lock: LockCall): Promise<Reply> {
  const { call, rename, leader } = lock;
  // The selector goes on as it was read here: no other layer filters lock traffic.
  const selector = renameSelector(call.info.query.get("fieldSelector") ?? "", rename);
  const reply = await sendMarked(lock, withParameter(translatedPath(call, undefined), "fieldSelector", selector));
  if (call.info.verb === "deletecollection" && reply.status === 200 && !call.info.query.get("dryRun"))
    leader.gone(call.info.resource);
  return selectedReply(lock, reply);
}

/** Answers the legacy watch of one object, by its name in the path. */
export async function namedWatch(lock: LockCall): Promise<Reply> {
  return selectedReply(lock, await sendMarked(lock, translatedPath(lock.call, lock.rename)));
}

function selectedReply(lock: LockCall, reply: Reply): Promise<Reply> {
  return translatedCollection(lock, reply, (meta) => isOwn(lock.snapshot, meta));
}

/** @param whole the request is over all namespaces, and only objects in the pod's namespace are locks */
export async function collection(lock: LockCall, whole: boolean): Promise<Reply> {
  const { call, snapshot, next, rename } = lock;
  const { verb, query } = call.info;
  const selector = query.get("fieldSelector") ?? "";
  const namesLock = rename !== undefined && selector.includes(rename.from);
  const asked = namesLock ? askedSelector(snapshot, selector, rename, whole) : undefined;
  if (verb === "deletecollection") return next(whole ? call : sparingLocks(call, asked?.selector ?? selector, snapshot));
  const readable = translatedPath(call, undefined);
  const reply = await next(asked === undefined ? readable : withParameter(readable, "fieldSelector", asked.selector));
  const seen: Keep = (meta) => meta.namespace !== snapshot.podNamespace || !isForeignLock(snapshot, meta.name);
  if (asked === undefined) return translatedCollection(lock, reply, seen);
  const shownName = (meta: ItemMeta) => (isOwn(snapshot, meta) ? snapshot.lockName : meta.name);
  return translatedCollection(lock, reply, (meta) => seen(meta) && asked.keep(shownName(meta)));
}

function askedSelector(snapshot: Snapshot, selector: string, rename: Rename, whole: boolean): WholeSelector | undefined {
  return whole ? wholeSelector(snapshot, selector, rename) : { selector: renameSelector(selector, rename), keep: () => true };
}

async function translatedCollection({ call, snapshot, rename }: LockCall, reply: Reply, keep: Keep): Promise<Reply> {
  if (reply.body === null) return reply;
  const encoding = readableEncoding(reply);
  if (encoding === undefined && reply.status >= 300) return reply;
  if (encoding === undefined) throw unreadableReply(reply);
  if (reply.status >= 300) return translatedObject(reply, rename);
  const { "content-length": _, ...headers } = reply.headers;
  const view: LockView = { keep, rename: rename && backwards(rename), namespace: snapshot.podNamespace };
  const translate = call.info.verb === "watch" ? renameWatch : renameList;
  return { ...reply, headers, body: translate(asSource(reply.body), encoding, view) };
}

function isOwn({ podNamespace, lockName, subset }: Snapshot, { namespace, name }: ItemMeta): boolean {
  return namespace === podNamespace && name === lockNameFor(lockName, subset);
}

// A deletecollection must not reach other subsets' locks: the selector excludes the names in the routes. For
// leases that is not enough, since pods of a subset that left the routes may still lead.
function sparingLocks(call: ResourceCall, selector: string, snapshot: Snapshot): Call {
  checkLeaseCollection(call);
  const terms = withoutForeignLocks(snapshot);
  return terms === "" ? call : withParameter(call, "fieldSelector", joinSelectors(selector, terms));
}

/** @throws StatusError Forbidden for a deletecollection of leases */
export function checkLeaseCollection({ info, record }: ResourceCall): void {
  if (info.resource !== "leases") return;
  noteDecision(record, "refused", "other-subset-lock");
  const message = `ctrlmesh: deletecollection leases: it would reach the leader-election locks of other subsets; delete by name`;
  throw new StatusError("Forbidden", message);
}

interface LockView {
  /** False for another subset's lock. It takes names upstream. */
  readonly keep: Keep;
  /** From the name upstream to the operator's name; undefined if they are equal. */
  readonly rename: Rename | undefined;
  /** The lock's namespace. An object elsewhere with the lock's name is not renamed. */
  readonly namespace: string;
}

function renameWatch(source: ByteSource, encoding: Encoding, { keep, rename, namespace }: LockView): ByteSource {
  const show = (frame: Uint8Array, isOwn: boolean) =>
    rename !== undefined && isOwn ? renameFrame(encoding, frame, rename) : frame;
  let isFirst = true;
  return frameStream(source, encoding, (frame) => {
    // Only the first event of a Table says what the columns are.
    const carriesColumns = isFirst;
    isFirst = false;
    const { type, objects, unreadable, isTable } = readFrame(encoding, frame);
    if (type === "ERROR") return show(frame, true);
    if (type === "BOOKMARK") return frame;
    const kept = objects.filter(keep);
    // Each event has one object, also as a Table.
    const isOwn = kept.every((meta) => meta.namespace === namespace);
    if (kept.length === objects.length && unreadable === 0) return show(frame, isOwn);
    return isTable && (kept.length > 0 || carriesColumns) ? show(filterTableFrame(frame, keep), isOwn) : undefined;
  });
}

function renameList(source: ByteSource, encoding: Encoding, { keep, rename, namespace }: LockView): ByteSource {
  if (rename === undefined) return listStream(source, createListFilter(encoding, keep), () => undefined);
  const renamed = elementRenamer(encoding, rename);
  const filter = createListFilter(encoding, keep, {
    rewrite: (element, meta, part) => (meta.namespace === namespace ? renamed(element, meta, part) : element),
  });
  return listStream(source, filter, () => undefined);
}
