// Sends a list or watch with what the API server can filter by itself, and filters the reply by its own content type.
// Invariant: fails closed. A successful reply that is not a readable list or watch is refused, never passed. Called by isolate.

import { createListFilter } from "../../../kube/codec/list-filter.ts";
import type { Encoding, ItemMeta } from "../../../kube/codec/types.ts";
import type { StatusError } from "../../../kube/status.ts";
import { RESOURCE_MOVES } from "../../../route/decide.ts";
import { isHiddenBy, type Planner, type QueryPlan } from "../../../route/plan-query.ts";
import { governingNamespace, isOwned, readViewOf } from "../../../route/snapshot.ts";
import type { ServerFeatures } from "../../api-server/server-features.ts";
import type { Call, Handler } from "../../call/call.ts";
import { askReadableCollection, filterReply, readableEncoding } from "../../call/readable.ts";
import { type End, endWhen } from "../../filter/end-when.ts";
import { failWhen } from "../../filter/fail-when.ts";
import { listStream } from "../../filter/list-stream.ts";
import { renewingWatch } from "../../filter/renewing-watch.ts";
import { ECHO_HEAD_BYTES, readEcho, withHead } from "../../filter/shard-echo.ts";
import {
  type CollectionRequest,
  hidesNamespaces,
  isTakenAway,
  NOTHING_PUSHED,
  type WatchScope,
} from "../../filter/watch-scope.ts";
import { type WatchDeps, watchStream } from "../../filter/watch-stream.ts";
import { asSource } from "../../http/byte-source.ts";
import type { ByteSource } from "../../http/byte-stream.ts";
import type { Reply } from "../../http/handler.ts";
import { enforcedNow, handoverRunning } from "./admission.ts";
import type { Pages } from "./pages.ts";
import type { PlanLog } from "./plan-log.ts";
import { createPushDown } from "./push-down.ts";
import { createRenew } from "./renew-watch.ts";
import { createTurns } from "./turns.ts";

export interface NarrowDeps extends WatchDeps {
  readonly features: ServerFeatures;
  /** Where `/debug/plans` reads the plans. */
  readonly plans: PlanLog;
  readonly planner: Planner;
  /** Shared with the reads that continue a list which needs no narrowing any more. */
  readonly pages: Pages;
}

/** Watches that are renewed at a time. */
const MAX_RENEWED = 2;

export type Narrow = (call: Call, scope: CollectionRequest, queryPlan: QueryPlan, next: Handler) => Promise<Reply>;

export function createNarrow(deps: NarrowDeps): Narrow {
  const { clock, features, planner } = deps;
  const pushDown = createPushDown(deps);
  const turns = createTurns(MAX_RENEWED);
  const send = async (call: Call, scope: CollectionRequest, queryPlan: QueryPlan, next: Handler) => {
    const { reply, plan: name, pushed } = await pushDown(call, scope.collection, queryPlan, next);
    // Labels are sent all the same where they are not heeded: not to send them would cost lists where they are, see judge-event.ts.
    const onIgnored = () => {
      if (pushed.ranges !== undefined) features.lacks(scope.collection, "shards", "ignored");
      else features.lacks(scope.collection, "fields", "ignored");
    };
    return { reply, scope: { ...scope, pushed, plan: name, onIgnored } };
  };
  return async (asked, scope, queryPlan, next) => {
    const call = askReadableCollection(asked);
    const sent = await send(call, scope, queryPlan, next);
    const renewing = {
      session: deps.session,
      planner,
      monotonicMs: () => clock.monotonicMs(),
      watch: (again: Call, narrowed: CollectionRequest, newPlan: QueryPlan) => send(again, narrowed, newPlan, next),
      list: next,
      turns,
    };
    return filterReply(call, sent.reply, (body, encoding) => {
      const { group, resource } = scope.collection;
      if (enforcedNow(deps.session).view(group, resource).isMoving) {
        body.cancel(movesMeanwhile());
        call.record.decision = "fenced";
        call.record.reason = "moving";
        throw movesMeanwhile();
      }
      if (call.info.verb !== "watch") return filterList(body, encoding, sent.scope, deps);
      return renewingWatch(body, encoding, sent.scope, deps, createRenew(call, scope, queryPlan, encoding, renewing));
    });
  };
}

/**
 * A reply to an allowed watch: passes untouched, and ends when the routes change for it. Where its frames cannot be told apart
 * it breaks, since there is no boundary at which an event could be put in; clients watch again and are decided upon anew.
 */
export function watchAllowed(reply: Reply, scope: CollectionRequest, deps: WatchDeps): Reply {
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
