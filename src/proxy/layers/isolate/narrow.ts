// Sends a list or watch with what the API server can filter, and filters the reply. Invariant: fails closed. A successful reply that is
// not a readable list or watch is refused, never passed. Called by isolate.ts.
import type { Planner, QueryPlan } from "../../../route/plan-query.ts";
import { readViewOf } from "../../../route/snapshot.ts";
import type { ServerFeatures } from "../../api-server/server-features.ts";
import type { Call, Handler } from "../../call/call.ts";
import { askReadableCollection, filterReply, readableEncoding } from "../../call/readable.ts";
import { type End, endWhen } from "../../filter/end-when.ts";
import { renewingWatch } from "../../filter/renewing-watch.ts";
import { type CollectionRequest, isTakenAway, NO_SERVER_FILTER } from "../../filter/sent-request.ts";
import { type WatchDeps, watchStream } from "../../filter/watch-stream.ts";
import { asSource } from "../../http/byte-stream.ts";
import type { Reply } from "../../http/handler.ts";
import { enforcedNow } from "../../session/session.ts";
import { resourceMoves } from "./admission.ts";
import { createRenewal, createTurns } from "./ask-renewal.ts";
import { ownedList } from "./owned-list.ts";
import type { Pages } from "./pages.ts";
import type { PlanLog } from "./plan-log.ts";
import { createServerSideFilter } from "./server-side-filter.ts";

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

export type Narrow = (call: Call, request: CollectionRequest, queryPlan: QueryPlan, next: Handler) => Promise<Reply>;

export function createNarrow(deps: NarrowDeps): Narrow {
  const { session, clock, features, planner } = deps;
  const serverSideFilter = createServerSideFilter(deps);
  const turns = createTurns(MAX_RENEWED);
  const send = async (call: Call, request: CollectionRequest, queryPlan: QueryPlan, next: Handler) => {
    const { reply, plan, serverFilter } = await serverSideFilter(call, request.collection, queryPlan, next);
    // Never "labels": a server that seems to ignore label selectors is still sent them. Without them, every object that leaves the subset by
    // a change of labels would make the client list again, also on a server that applies them.
    const onIgnored = () =>
      features.lacks(request.collection, serverFilter.shards === undefined ? "fields" : "shards", "ignored");
    return { reply, sent: { ...request, serverFilter, plan, onIgnored } };
  };
  return async (asked, request, queryPlan, next) => {
    const call = askReadableCollection(asked);
    const { reply, sent } = await send(call, request, queryPlan, next);
    const renewing = {
      session,
      planner,
      monotonicMs: () => clock.monotonicMs(),
      watch: (again: Call, renewed: CollectionRequest, newPlan: QueryPlan) => send(again, renewed, newPlan, next),
      list: next,
      turns,
    };
    return filterReply(call, reply, (body, encoding) => {
      const { group, resource } = request.collection;
      if (enforcedNow(session).view(group, resource).isMoving) {
        call.record.decision = "fenced";
        call.record.reason = "moving";
        body.cancel(resourceMoves());
        throw resourceMoves();
      }
      if (call.info.verb !== "watch") return ownedList(body, encoding, sent, deps);
      return renewingWatch(body, encoding, sent, deps, createRenewal(call, request, queryPlan, encoding, renewing));
    });
  };
}

/**
 * The reply to an allowed watch. It passes untouched, and ends with a 410 event when a route change touches its collection. If the proxy
 * cannot read the frames, it cannot add that event: it breaks the connection when the subset loses objects of the collection.
 */
export function watchAllowed(reply: Reply, request: CollectionRequest, deps: WatchDeps): Reply {
  if (reply.status !== 200 || reply.body === null) return reply;
  const encoding = readableEncoding(reply);
  const body = asSource(reply.body);
  const { "content-length": _, ...headers } = reply.headers;
  if (encoding !== undefined) {
    const sent = { ...request, serverFilter: NO_SERVER_FILTER };
    return { ...reply, headers, body: watchStream(body, encoding, sent, deps) };
  }
  const { collection } = request;
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
