// Sends a list or watch with what the API server can filter by itself, and filters the reply by its own content type.
// Invariant: fails closed. A successful reply that is not a readable list or watch is refused, never passed. Called by isolate.

import { narrowAccept } from "../../../kube/codec/content-negotiation.ts";
import { createListFilter } from "../../../kube/codec/list-filter.ts";
import type { Encoding, ItemMeta } from "../../../kube/codec/types.ts";
import { StatusError } from "../../../kube/status.ts";
import { RESOURCE_MOVES } from "../../../route/decide.ts";
import { createPlanner, isHiddenBy, type Planner, type QueryPlan } from "../../../route/plan-query.ts";
import { governingNamespace, isOwned, readViewOf } from "../../../route/snapshot.ts";
import { createServerFeatures, type ServerFeatures } from "../../api-server/server-features.ts";
import { type End, endWhen } from "../../filter/end-when.ts";
import { failWhen } from "../../filter/fail-when.ts";
import { listStream } from "../../filter/list-stream.ts";
import { type Renew, renewingWatch } from "../../filter/renewing-watch.ts";
import { ECHO_HEAD_BYTES, readEcho, withHead } from "../../filter/shard-echo.ts";
import { hidesNamespaces, isTakenAway, NOTHING_PUSHED, type WatchScope } from "../../filter/watch-scope.ts";
import { type WatchDeps, watchStream } from "../../filter/watch-stream.ts";
import { asSource } from "../../http/byte-source.ts";
import type { ByteSource } from "../../http/byte-stream.ts";
import { discardBody } from "../../http/discard-body.ts";
import type { Call, Handler, Reply } from "../../http/handler.ts";
import { withParameter } from "../../http/query.ts";
import { readableEncoding } from "../readable-encoding.ts";
import { enforcedNow, handoverRunning } from "./admission.ts";
import { createPages, type Pages } from "./pages.ts";
import { createPlanLog, type PlanLog } from "./plan-log.ts";
import { createPushDown } from "./push-down.ts";
import { createRenew } from "./renew-watch.ts";
import { createTurns } from "./turns.ts";

export interface NarrowDeps extends WatchDeps {
  /** What the API servers do not know; default: a memory of its own. */
  readonly features?: ServerFeatures;
  /** Where plans are noted for `/debug/plans`; default: nowhere that can be read. */
  readonly plans?: PlanLog;
  /** Remembers plans; default: one of its own. */
  readonly planner?: Planner;
  /** Shared with whatever continues lists that are not narrowed any more; default: of its own. */
  readonly pages?: Pages;
}

/** What is asked, but for what is pushed down. */
export type AskedScope = Pick<WatchScope, "collection" | "continues" | "version">;

/** Watches that are renewed at a time. */
const MAX_RENEWED = 2;

export type Narrow = (call: Call, scope: AskedScope, plan: QueryPlan, next: Handler) => Promise<Reply>;

export function createNarrow(deps: NarrowDeps): Narrow {
  const { clock } = deps;
  const features = deps.features ?? createServerFeatures(clock);
  const [plans, pages] = [deps.plans ?? createPlanLog(clock), deps.pages ?? createPages(clock)];
  const pushDown = createPushDown({ ...deps, features, plans, pages });
  const [turns, planner] = [createTurns(MAX_RENEWED), deps.planner ?? createPlanner()];
  const send = async (call: Call, scope: AskedScope, plan: QueryPlan, next: Handler) => {
    const { reply, plan: name, pushed } = await pushDown(call, scope.collection, plan, next);
    // Labels are sent all the same where they are not heeded: not to send them would cost lists where they are, see judge-event.ts.
    const onIgnored = () => {
      if (pushed.ranges !== undefined) features.lacks(scope.collection, "shards", "ignored");
      else features.lacks(scope.collection, "fields", "ignored");
    };
    return { reply, scope: { ...scope, pushed, plan: name, onIgnored } };
  };
  return async (asked, scope, plan, next) => {
    const call = readable(asked);
    const sent = await send(call, scope, plan, next);
    const renewing = {
      session: deps.session,
      planner,
      monotonicMs: () => clock.monotonicMs(),
      watch: (again: Call, narrowed: AskedScope, newPlan: QueryPlan) => send(again, narrowed, newPlan, next),
      list: next,
      turns,
    };
    return filterReply(sent.reply, call, sent.scope, deps, (encoding) => createRenew(call, scope, plan, encoding, renewing));
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
  let hasLost = false;
  const end: End = {
    onChange: (listener) =>
      deps.resync.watching(collection, ({ lost }) => {
        hasLost ||= lost;
        listener();
      }),
    isOver: () =>
      hasLost || isTakenAway(readViewOf(enforcedNow(deps.session).view(collection.group, collection.resource)), collection),
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

function filterReply(
  reply: Reply,
  call: Call,
  scope: WatchScope,
  deps: NarrowDeps,
  renewOf: (encoding: Encoding) => Renew,
): Reply {
  if (reply.status >= 300) return reply;
  const { "content-length": _, etag: _tag, ...headers } = reply.headers;
  if (call.method === "HEAD" && reply.body === null) return { ...reply, headers };
  const encoding = readableEncoding(reply);
  if (encoding === undefined || reply.status !== 200 || reply.body === null) {
    discardBody(reply.body);
    const what = `status ${reply.status}, content type ${String(reply.headers["content-type"] ?? "none")}`;
    throw notReadable(`the API server's reply cannot be filtered (${what})`);
  }
  if (enforcedNow(deps.session).view(scope.collection.group, scope.collection.resource).isMoving) {
    discardBody(reply.body);
    call.record.decision = "fenced";
    call.record.reason = "moving";
    throw movesMeanwhile();
  }
  const body = asSource(reply.body);
  const isWatch = call.info.verb === "watch";
  return {
    ...reply,
    headers,
    body: isWatch ? renewingWatch(body, encoding, scope, deps, renewOf(encoding)) : filterList(body, encoding, scope, deps),
  };
}

function filterList(body: ByteSource, encoding: Encoding, scope: WatchScope, deps: NarrowDeps): ByteSource {
  const { collection, pushed, plan = "none" } = scope;
  const { group, resource } = collection;
  let enforced = enforcedNow(deps.session);
  let view = readViewOf(enforced.view(group, resource));
  let suspect = hidesNamespaces(pushed) ? scope.onIgnored : undefined;
  const keep = (meta: ItemMeta) => {
    // The view of the instant: what is lost while the list runs is not shown any more.
    const now = enforcedNow(deps.session);
    if (now !== enforced) {
      enforced = now;
      view = readViewOf(now.view(group, resource));
    }
    if (isOwned(view, meta)) return true;
    const namespace = governingNamespace(group, resource, meta);
    const standing = view.ownershipOf(namespace);
    if (standing === "unknown" || standing === "moving") deps.resync.leftOut.note(collection, namespace);
    if (suspect !== undefined && isHiddenBy(pushed, namespace)) {
      suspect();
      suspect = undefined;
    }
    return false;
  };
  // A resource that has begun to move as a whole would come out as an empty list, and clients would believe it.
  const filter = failWhen(
    createListFilter(encoding, keep, { labels: view.labelFilter !== undefined }),
    () => view.isMoving === true,
    movesMeanwhile,
  );
  const served = deps.metrics.servedBy(plan);
  const listen = (head: Uint8Array) => {
    if (readEcho(encoding, head) === "ignored") scope.onIgnored?.();
  };
  const source = pushed.ranges === undefined ? body : withHead(body, ECHO_HEAD_BYTES, listen);
  return listStream(source, filter, (filteredBytes, readBytes) => {
    deps.metrics.filteredBytes.inc(filteredBytes);
    served.read(readBytes);
    served.sent(readBytes - filteredBytes);
    served.dropped(filter.dropped);
  });
}

function movesMeanwhile(): StatusError {
  return handoverRunning(`ctrlmesh: ${RESOURCE_MOVES}`);
}

function notReadable(message: string): StatusError {
  return new StatusError("NotAcceptable", `ctrlmesh: ${message}`);
}
