// Sends a list or watch with the part of its plan that the API server can filter. Invariants: the caller
// never sees a refusal of the proxy's own selectors; the move log knows before the call goes whether the
// query leaves out unknown namespaces. Nothing is
// shown of a resource that moves as a whole.
import { NEVER } from "../../../kube/resource-version.ts";
import {
  type Capabilities,
  type HidingQuery,
  joinSelectors,
  mayHideUnknown,
  NO_NAMESPACE,
  type PlanName,
  planName,
  planQuery,
  type QueryPlan,
  WHOLE,
} from "../../../route/plan-query.ts";
import { readViewOf } from "../../../route/snapshot.ts";
import type { Feature, ServerFeatures } from "../../api-server/server-features.ts";
import type { Call, Handler } from "../../call/call.ts";
import { type CollectionRequest, NO_SERVER_FILTER, type SentRequest } from "../../filter/sent-request.ts";
import type { StreamMetrics } from "../../filter/stream-metrics.ts";
import { discardBody, readBody } from "../../http/byte-stream.ts";
import type { Reply } from "../../http/handler.ts";
import type { Collection } from "../../moves/collection.ts";
import type { MoveLog } from "../../moves/move-log.ts";
import { TOLD_NOTHING } from "../../moves/resource-log.ts";
import { enforcedNow, type Session } from "../../session/session.ts";
import { type FilterQuery, filterQueryFor, fitQuery, plainQuery, withFilterQuery } from "./filter-query.ts";
import type { Pages } from "./pages.ts";
import type { PlanEntry, PlanLog } from "./plan-log.ts";
import { resourceMoves } from "./read-view.ts";

export interface ServerSideFilterDeps {
  readonly session: Session;
  readonly moves: MoveLog;
  readonly metrics: StreamMetrics;
  readonly features: ServerFeatures;
  readonly plans: PlanLog;
  readonly pages: Pages;
}

/** The answer, and what the API server was asked for. */
export interface Sent {
  readonly reply: Reply;
  readonly sent: SentRequest;
}

/**
 * Sends a list or watch with the part of its plan that the API server can filter.
 * @throws StatusError for a good answer while all of the resource moves
 */
export type ServerSideFilter = (call: Call, request: CollectionRequest, plan: QueryPlan, next: Handler) => Promise<Sent>;

/** An API server says less about a selector. A longer error is no Status and about something else. */
const MAX_ERROR_BYTES = 1024 * 1024;

export function createServerSideFilter(deps: ServerSideFilterDeps): ServerSideFilter {
  const { session, moves, features } = deps;
  const sendPlan = createPlanSender(deps);

  return async (call, request, plan, next) => {
    const { collection, version } = request;
    const told = moves.of(collection).position;
    const departed = version === undefined ? { version: NEVER, told } : { version, told: TOLD_NOTHING };
    const asked = { ...request, told, departed };
    const { reply, ...filter } =
      plan === WHOLE ? { reply: await next(call), serverFilter: NO_SERVER_FILTER } : await sendPlan(call, collection, plan, next);
    if (reply.status === 200 && enforcedNow(session).view(collection.group, collection.resource).isMoving) {
      discardBody(reply.body);
      call.record.decision = "fenced";
      call.record.reason = "moving";
      throw resourceMoves();
    }
    if (plan === WHOLE) return { reply, sent: { ...asked, ...filter } };
    // Never "labels": a server that seems to ignore label selectors is still sent them. Without them, every
    // object that leaves the subset by a change of labels would make the client list again, even on a server
    // that applies them.
    const onIgnored = () => features.lacks(collection, filter.serverFilter.shards === undefined ? "fields" : "shards", "ignored");
    return { reply, sent: { ...asked, ...filter, onIgnored } };
  };
}

interface PlanSent {
  readonly reply: Reply;
  readonly plan: PlanName;
  readonly serverFilter: HidingQuery;
}

function createPlanSender({ session, moves, metrics, features, plans, pages }: ServerSideFilterDeps) {
  return async (asked: Call, collection: Collection, queryPlan: QueryPlan, next: Handler): Promise<PlanSent> => {
    const view = readViewOf(enforcedNow(session).view(collection.group, collection.resource));
    const replan = (capabilities: Capabilities) => planQuery(view, queryPlan.scope, capabilities);
    const without = () => (queryPlan.only === undefined ? queryPlan : replan({ oneNamespace: false }));
    const { call, plan } = asked.info.query.get("continue")
      ? pages.resume(asked, collection, queryPlan, without)
      : { call: asked, plan: queryPlan };
    const lackOf = (feature: Feature) => features.lackOf(collection, feature);
    const query = fitQuery(call, filterQueryFor(call, plan, lackOf), replan);
    if (mayHideUnknown(query)) moves.of(collection).hideUnknown();
    const isOfOne = query.only !== undefined && query.only !== NO_NAMESPACE;
    if (isOfOne && call.info.query.has("limit")) pages.began(collection, query.only);

    const served = (reply: Reply, serverFilter: FilterQuery): PlanSent => {
      const name = planName(serverFilter.namespacePlan, serverFilter.labelSelector !== undefined);
      call.record.plan = name;
      metrics.narrowed.inc({ plan: name });
      plans.record({ ...entryOf(call, collection, plan, serverFilter), plan: name, status: reply.status });
      return { reply, plan: name, serverFilter };
    };
    const first = await next(withFilterQuery(call, query));
    const suspect = query.features.at(-1);
    if (suspect === undefined) return served(first, query);
    const { isRefused, reply } = await readRefusal(first, suspect);
    if (!isRefused) return served(reply, query);
    // The API server may dislike the proxy's selectors or the caller's: the same call without the proxy's
    // shows which.
    discardBody(reply.body);
    const plain = plainQuery(query);
    const second = await next(withFilterQuery(call, plain));
    // "Too long" concerns this one URL, and most of it may be the caller's.
    const isTooLong = reply.status === 414 || reply.status === 431;
    if (!isTooLong && !isRefusal(second.status)) features.lacks(collection, suspect, "refused");
    return served(second, plain);
  };
}

// Codes by which a server, or a proxy in front of it, turns a query away.
function isRefusal(status: number): boolean {
  return status === 400 || status === 414 || status === 431;
}

// kube-apiserver answers a shard selector that it cannot read with a 500, in any encoding.
async function readRefusal(reply: Reply, suspect: Feature): Promise<{ readonly isRefused: boolean; readonly reply: Reply }> {
  if (reply.status !== 500 || suspect !== "shards") return { isRefused: isRefusal(reply.status), reply };
  const body = await readBody(reply.body, MAX_ERROR_BYTES);
  return { isRefused: Buffer.from(body).includes("shard selector"), reply: { ...reply, body } };
}

function entryOf(
  { info }: Call,
  { group, resource }: Collection,
  plan: QueryPlan,
  query: FilterQuery,
): Omit<PlanEntry, "plan" | "status"> {
  const chars = (name: string, added: string | undefined) => {
    const own = info.query.get(name);
    return added === undefined ? (own ?? "").length : joinSelectors(own, added).length;
  };
  return {
    group,
    resource,
    verb: info.verb,
    selectorChars: {
      label: chars("labelSelector", query.labelSelector),
      field: chars("fieldSelector", query.fieldSelector),
      shard: chars("shardSelector", query.shards?.selector),
    },
    namespaces: plan.namespaces ?? { own: 0, foreign: 0 },
    notSent: query.notSent,
  };
}
