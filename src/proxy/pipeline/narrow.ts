// Sends a list or watch with what the API server can filter by itself, and filters the reply by its own content type.
// Invariant: fails closed. A successful reply that is not a readable list or watch is refused, never passed. Called by isolate.
import { createListFilter } from "../../kube/codec/list-filter.ts";
import { narrowAccept } from "../../kube/codec/media-type.ts";
import type { Encoding, ItemMeta } from "../../kube/codec/types.ts";
import { parseFieldSelector } from "../../kube/field-selector.ts";
import { StatusError } from "../../kube/status.ts";
import { joinSelectors, type QueryPlan } from "../../route/plan-query.ts";
import { governingNamespace } from "../../route/snapshot.ts";
import type { Collection } from "../session/resync.ts";
import { type End, endWhen } from "../stream/end-when.ts";
import { listStream } from "../stream/list-stream.ts";
import { isTakenAway, type PushedDown, type WatchScope } from "../stream/watch-scope.ts";
import { type WatchDeps, watchStream } from "../stream/watch-stream.ts";
import { enforcedNow } from "./admission.ts";
import { asSource } from "./byte-source.ts";
import { discardBody } from "./discard-body.ts";
import type { Call, Handler, Reply } from "./handler.ts";
import { withParameter } from "./query.ts";
import { readableEncoding } from "./readable-encoding.ts";

export type NarrowDeps = WatchDeps;

/** What is asked, but for what is pushed down. */
export type AskedScope = Omit<WatchScope, "pushed">;

export type Narrow = (call: Call, scope: AskedScope, plan: QueryPlan, next: Handler) => Promise<Reply>;

const NOTHING_PUSHED: PushedDown = { only: undefined, excluded: [] };
const MAX_REMEMBERED = 1_000;

export function createNarrow(deps: NarrowDeps): Narrow {
  // Resources whose server knows no field metadata.namespace (some aggregated APIs).
  const noPushdown = new Set<string>();

  const send = async (call: Call, plan: QueryPlan, next: Handler): Promise<Reply> => {
    deps.metrics.pushdown.inc({ plan: plan.fieldSelector === "" ? "none" : plan.plan });
    call.record.plan = plan.fieldSelector === "" ? "none" : plan.plan;
    if (plan.fieldSelector === "") return next(call);
    return next(withParameter(call, "fieldSelector", joinSelectors(call.info.query.get("fieldSelector"), plan.fieldSelector)));
  };

  return async (asked, scope, plan, next) => {
    const call = readable(asked);
    const key = `${scope.collection.group}/${scope.collection.resource}`;
    const plain: QueryPlan = { ...plan, fieldSelector: "" };
    const pushes = plan.fieldSelector !== "" && !noPushdown.has(key);
    if (pushes) noteHidden(plan, scope.collection, deps);
    const reply = await send(call, pushes ? plan : plain, next);
    if (!pushes || reply.status !== 400)
      return filterReply(reply, call, { ...scope, pushed: pushes ? pushedBy(plan) : NOTHING_PUSHED }, deps);
    // The selector may be what the server does not like, or the caller's own: asking again without ours tells.
    discardBody(reply.body);
    const second = await send(call, plain, next);
    if (second.status !== 400 && noPushdown.size < MAX_REMEMBERED) noPushdown.add(key);
    return filterReply(second, call, { ...scope, pushed: NOTHING_PUSHED }, deps);
  };
}

/**
 * A reply to an allowed watch: passes untouched, and ends when the routes change for it. Where its frames cannot be told apart
 * it breaks, since there is no boundary at which an event could be put in; clients watch again and are decided upon anew.
 */
export function watchAllowed(reply: Reply, scope: AskedScope, deps: WatchDeps): Reply {
  if (reply.status !== 200 || reply.body === null) return reply;
  const encoding = readableEncoding(reply);
  const full: WatchScope = { ...scope, pushed: NOTHING_PUSHED };
  const body = asSource(reply.body);
  const { "content-length": _, ...headers } = reply.headers;
  if (encoding !== undefined) return { ...reply, headers, body: watchStream(body, encoding, full, deps) };
  const { collection } = scope;
  const end: End = {
    onChange: (listener) => deps.resync.watching(collection, listener),
    isOver: () => isTakenAway(enforcedNow(deps.session).view(collection.group, collection.resource), collection),
  };
  return { ...reply, headers, body: endWhen(body, end, "break") };
}

// The caller's request as its reply can be read. A body has no meaning here and could not be sent twice.
function readable(call: Call): Call {
  const accept = narrowAccept(call.headers.accept);
  discardBody(call.body);
  const { "content-length": _length, "transfer-encoding": _coding, "content-type": _type, ...headers } = call.headers;
  const narrowed: Call = { ...call, headers: { ...headers, accept, "accept-encoding": "identity" }, body: null };
  // Without metadata nobody could say whose a Table's rows are.
  return call.info.query.get("includeObject") === "None" ? withParameter(narrowed, "includeObject", "Metadata") : narrowed;
}

// What one namespace's list does not show is left out of it: once another namespace is ours, it must be listed again.
function noteHidden(plan: QueryPlan, collection: Collection, deps: NarrowDeps): void {
  if (plan.only !== undefined) deps.resync.leftOut.noteOnly(collection, plan.only);
}

function pushedBy(plan: QueryPlan): PushedDown {
  const terms = parseFieldSelector(plan.fieldSelector);
  return { only: plan.only, excluded: terms.filter(({ operator }) => operator === "!=").map(({ value }) => value) };
}

function filterReply(reply: Reply, call: Call, scope: WatchScope, deps: NarrowDeps): Reply {
  if (reply.status >= 300) return reply;
  const { "content-length": _, etag: _tag, ...headers } = reply.headers;
  if (call.method === "HEAD" && reply.body === null) return { ...reply, headers };
  const encoding = readableEncoding(reply);
  if (encoding === undefined || reply.status !== 200 || reply.body === null) {
    discardBody(reply.body);
    const what = `status ${reply.status}, content type ${String(reply.headers["content-type"] ?? "none")}`;
    throw notReadable(`the API server's reply cannot be filtered (${what})`);
  }
  const body = asSource(reply.body);
  const isWatch = call.info.verb === "watch";
  return {
    ...reply,
    headers,
    body: isWatch ? watchStream(body, encoding, scope, deps) : filterList(body, encoding, scope.collection, deps),
  };
}

function filterList(body: ReturnType<typeof asSource>, encoding: Encoding, collection: Collection, deps: NarrowDeps) {
  const { group, resource } = collection;
  let enforced = enforcedNow(deps.session);
  let view = enforced.view(group, resource);
  const keep = (meta: ItemMeta) => {
    // The view of the instant: what is lost while the list runs is not shown any more.
    const now = enforcedNow(deps.session);
    if (now !== enforced) {
      enforced = now;
      view = now.view(group, resource);
    }
    const namespace = governingNamespace(group, resource, meta);
    const standing = view.standing(namespace);
    if (standing === "unknown" || standing === "moving") deps.resync.leftOut.note(collection, namespace);
    return standing === "mine";
  };
  return listStream(body, createListFilter(encoding, keep), (bytes) => deps.metrics.filteredBytes.inc(bytes));
}

function notReadable(message: string): StatusError {
  return new StatusError("NotAcceptable", `ctrlmesh: ${message}`);
}
