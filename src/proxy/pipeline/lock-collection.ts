// Lists, watches and deletes of many where locks live: the subset's own lock is shown under the operator's name, others are
// hidden and out of reach. Called by the election layer.
import type { Rename } from "../../kube/codec/rename.ts";
import type { ItemMeta } from "../../kube/codec/types.ts";
import { StatusError } from "../../kube/status.ts";
import { isForeignLock, lockNameFor } from "../../route/lock.ts";
import { joinSelectors } from "../../route/plan-query.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import { type LockView, renameList, renameWatch } from "../stream/rename-stream.ts";
import { asSource } from "./byte-source.ts";
import type { Call, Reply } from "./handler.ts";
import { backwards, translatedObject, unreadableReply } from "./lock-body.ts";
import { renameSelector, withoutForeignLocks } from "./lock-names.ts";
import { type LockCall, translatedPath } from "./lock-object.ts";
import { withParameter } from "./query.ts";
import { readableEncoding } from "./readable-encoding.ts";
import type { ResourceCall } from "./resource-call.ts";

export async function selectedLock({ call, snapshot, next, rename }: LockCall): Promise<Reply> {
  call.record.lock = true;
  // What goes on is the selector as it was read here, also where nothing is renamed: nobody else filters lock traffic.
  const selector = renameSelector(call.info.query.get("fieldSelector") ?? "", rename);
  const asked = withParameter(translatedPath(call, undefined), "fieldSelector", selector);
  return selectedReply(await next(asked), snapshot, rename, call.info.verb);
}

/** The legacy watch of one object, by its name in the path. */
export async function namedWatch({ call, snapshot, next, rename }: LockCall): Promise<Reply> {
  call.record.lock = true;
  return selectedReply(await next(translatedPath(call, rename)), snapshot, rename, "watch");
}

function selectedReply(reply: Reply, snapshot: Snapshot, rename: Rename | undefined, verb: string): Promise<Reply> {
  const own = lockNameFor(snapshot.lockName, snapshot.subset);
  const keep = ({ namespace, name }: ItemMeta) => namespace === snapshot.podNamespace && name === own;
  return translatedCollection(reply, verb, { keep, rename: rename && backwards(rename) });
}

export async function collection({ call, snapshot, next, rename }: LockCall, whole: boolean): Promise<Reply> {
  const { info } = call;
  if (info.verb === "deletecollection") return whole ? next(call) : next(sparingLocks(call, snapshot));
  const reply = await next(translatedPath(call, undefined));
  // Over all namespaces the own lock keeps its name upstream: elsewhere an object may have that name by right.
  const view: LockView = { keep: keepOf(snapshot), rename: whole || rename === undefined ? undefined : backwards(rename) };
  return translatedCollection(reply, info.verb, view);
}

export async function translatedCollection(reply: Reply, verb: string, view: LockView): Promise<Reply> {
  if (reply.body === null) return reply;
  const encoding = readableEncoding(reply);
  if (encoding === undefined && reply.status >= 300) return reply;
  if (encoding === undefined) throw unreadableReply(reply);
  const { "content-length": _, ...headers } = reply.headers;
  if (reply.status >= 300) return translatedObject(reply, view.rename && backwards(view.rename));
  const translate = verb === "watch" ? renameWatch : renameList;
  return { ...reply, headers, body: translate(asSource(reply.body), encoding, view) };
}

function keepOf(snapshot: Snapshot): (meta: ItemMeta) => boolean {
  return ({ namespace, name }) => namespace !== snapshot.podNamespace || !isForeignLock(snapshot, name);
}

// Deleting by a selector must not reach other subsets' locks. Their names are known from the routes; for leases, which are
// seldom anything else, that is not enough.
function sparingLocks(call: ResourceCall, snapshot: Snapshot): Call {
  if (call.info.resource === "leases") {
    call.record.decision = "refused";
    const message = `ctrlmesh: deletecollection leases: it would reach the leader-election locks of other subsets; delete by name`;
    throw new StatusError("Forbidden", message);
  }
  const terms = withoutForeignLocks(snapshot);
  return terms === "" ? call : withParameter(call, "fieldSelector", joinSelectors(call.info.query.get("fieldSelector"), terms));
}
