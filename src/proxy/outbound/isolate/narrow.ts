// Sends lists and watches with what the API server can filter, and filters the reply. Invariant: fails
// closed. A successful reply that is not a readable list or watch is refused, never passed. Called by
// isolate.ts.
import { NEVER } from "../../../kube/resource-version.ts";
import { type HidingQuery, NO_PLAN, type Planner, type QueryPlan, type ResourceScope } from "../../../route/plan-query.ts";
import type { Feature, ServerFeatures } from "../../api-server/server-features.ts";
import type { Call, Handler, ResourceCall } from "../../call/call.ts";
import { askReadableCollection, filterReply } from "../../call/readable.ts";
import { expiredWatch } from "../../filter/expired.ts";
import type { RenewingDeps } from "../../filter/renewing-watch.ts";
import { type CollectionRequest, NO_SERVER_FILTER } from "../../filter/sent-request.ts";
import { discardBody } from "../../http/byte-stream.ts";
import type { Reply } from "../../http/handler.ts";
import { type OpenList, TOLD_NOTHING } from "../../moves/resource-log.ts";
import { enforcedNow } from "../../session/session.ts";
import { resourceMoves } from "./admission.ts";
import { type ByNamespaceDeps, createByNamespace } from "./by-namespace.ts";
import { createTurns, listed, planNow, WHOLE } from "./catch-up.ts";
import { beginByNamespace } from "./initial-events.ts";
import { ownedList, wholeList } from "./owned-list.ts";
import type { Pages } from "./pages.ts";
import type { PlanLog } from "./plan-log.ts";
import { serveWatch, type WatchServerDeps } from "./serve-watch.ts";
import { createServerSideFilter } from "./server-side-filter.ts";

export interface NarrowDeps extends RenewingDeps {
  readonly features: ServerFeatures;
  /** Where `/debug/plans` reads the plans. */
  readonly plans: PlanLog;
  readonly planner: Planner;
  readonly planLists?: ByNamespaceDeps["planLists"];
  /** Shared with the reads that continue a list which needs no narrowing any more. */
  readonly pages: Pages;
}

/** Watches that ask for what has moved at a time. */
const MAX_CATCHING_UP = 3;

/** Answers a list or watch of which the client gets what the plan says. */
export type Narrow = (
  call: ResourceCall,
  request: CollectionRequest,
  queryPlan: QueryPlan,
  scope: ResourceScope,
  next: Handler,
) => Promise<Reply>;

export function createNarrow(deps: NarrowDeps): Narrow {
  const { session, features, moves, pages } = deps;
  const serverSideFilter = createServerSideFilter(deps);
  const byNamespace = createByNamespace(deps);
  const turns = createTurns(MAX_CATCHING_UP);
  const send = async (call: Call, request: CollectionRequest, queryPlan: QueryPlan, next: Handler) => {
    const told = moves.of(request.collection).position;
    const { version } = request;
    const departed = version === undefined ? { version: NEVER, told } : { version, told: TOLD_NOTHING };
    const asked = { ...request, told, departed };
    if (queryPlan === WHOLE) return { reply: await next(call), sent: { ...asked, serverFilter: NO_SERVER_FILTER } };
    const { reply, plan, serverFilter } = await serverSideFilter(call, request.collection, queryPlan, next);
    // Never "labels": a server that seems to ignore label selectors is still sent them. Without them, every
    // object that leaves the subset by a change of labels would make the client list again, also on a server
    // that applies them.
    const onIgnored = () => features.lacks(request.collection, featureOf(serverFilter), "ignored");
    return { reply, sent: { ...asked, serverFilter, plan, onIgnored } };
  };
  const refuseIfMoving = ({ record }: Call, { collection }: CollectionRequest, { status, body }: Reply) => {
    if (status !== 200 || !enforcedNow(session).view(collection.group, collection.resource).isMoving) return;
    discardBody(body);
    record.decision = "fenced";
    record.reason = "moving";
    throw resourceMoves();
  };
  const watchDeps = (next: Handler): WatchServerDeps => ({
    ...deps,
    list: next,
    turns,
    async watch(call, request, queryPlan) {
      const { reply, sent } = await send(call, request, queryPlan, next);
      refuseIfMoving(call, request, reply);
      return { reply, sent };
    },
  });
  const wholeOf = async (asked: ResourceCall, { collection }: CollectionRequest, list: OpenList, next: Handler) => {
    // The first page may have been narrowed.
    const isPage = asked.info.query.has("continue");
    const call = isPage ? pages.resume(asked, collection, NO_PLAN, () => NO_PLAN).call : asked;
    return wholeList(await next(call), collection, list, session);
  };

  const watched: Narrow = async (asked, request, queryPlan, scope, next) => {
    const watching = watchDeps(next);
    if (queryPlan === WHOLE || request.version !== undefined) return serveWatch(asked, request, queryPlan, scope, watching);
    const planAgain = async (call: ResourceCall, from: CollectionRequest) => {
      const plan = planNow(call, scope, deps);
      return plan === undefined ? expiredWatch(call) : serveWatch(call, from, plan, scope, watching);
    };
    const log = moves.of(request.collection);
    const { position } = log;
    const begun = await beginByNamespace(asked, request, queryPlan, next, { ...deps, byNamespace, goOn: planAgain });
    if (begun !== undefined) return begun;
    // A plan holds for the moment of its decision.
    return log.position === position ? serveWatch(asked, request, queryPlan, scope, watching) : planAgain(asked, request);
  };

  return (asked, request, queryPlan, scope, next) => {
    if (asked.info.verb === "watch") return watched(asked, request, queryPlan, scope, next);
    return listed(moves.of(request.collection), async (list) => {
      if (queryPlan === WHOLE) return wholeOf(asked, request, list, next);
      const call = askReadableCollection(asked);
      const joined = await byNamespace.list(call, request.collection, queryPlan, list, next);
      if (joined !== undefined) return joined;
      const { reply, sent: query } = await send(call, request, queryPlan, next);
      const sent = { ...query, onRead: byNamespace.learner(call, query) };
      refuseIfMoving(call, request, reply);
      return filterReply(call, reply, (body, encoding) => ownedList(body, encoding, sent, list, deps));
    });
  };
}

function featureOf({ shards }: HidingQuery): Feature {
  return shards === undefined ? "fields" : "shards";
}
