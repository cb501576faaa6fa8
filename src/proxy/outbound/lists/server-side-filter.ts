// Sends a list or watch with the part of its plan that the API server can filter. Invariants: the caller's
// own selectors stay, and a refusal of the proxy's selectors is never shown. The move log knows beforehand
// whether unknown namespaces are left out. No object of a resource that moves as a whole is shown.
import { NEVER } from "../../../kube/resource-version.ts";
import { TOLD_NOTHING } from "../../../mesh/moves/known.ts";
import type { MoveLog } from "../../../mesh/moves/move-log.ts";
import {
  excludedNamespaces,
  type HidingQuery,
  joinSelectors,
  mayHideUnknown,
  type NamespacePlan,
  type PlanName,
  planName,
  planQuery,
  type QueryPlan,
  type ShardPlan,
  WHOLE,
} from "../../../mesh/ownership/plan-query.ts";
import { readViewOf } from "../../../mesh/ownership/snapshot.ts";
import type { Feature, ServerFeatures } from "../../api-server/discovery.ts";
import { type Handler, noteDecision, type ResourceCall, withTarget } from "../../call/call.ts";
import { type CollectionRequest, NO_SERVER_FILTER, type SentRequest } from "../../filter/sent-request.ts";
import type { StreamMetrics } from "../../filter/stream-metrics.ts";
import { discardBody, readBody } from "../../http/byte-stream.ts";
import type { Reply } from "../../http/handler.ts";
import { enforcedNow, type Session } from "../../session/session.ts";
import type { NotSent, PlanLog } from "./plan-log.ts";
import { resourceMoves } from "./proxy-list.ts";

export interface ServerSideFilterDeps {
  readonly session: Session;
  readonly moves: MoveLog;
  readonly metrics: StreamMetrics;
  readonly features: ServerFeatures;
  readonly plans: PlanLog;
}

export interface Sent {
  readonly reply: Reply;
  readonly sent: SentRequest;
}

/** @throws StatusError for a good answer while all of the resource moves */
export type ServerSideFilter = (call: ResourceCall, request: CollectionRequest, plan: QueryPlan, next: Handler) => Promise<Sent>;

/** An error about a selector is shorter. A longer one is about something else. */
const MAX_ERROR_BYTES = 1024 * 1024;
/** Bound of a target with a shard selector: proxies before kube-apiserver often take 8 KiB (nginx). */
export const MAX_TARGET_BYTES = 8_000;

export function createServerSideFilter(deps: ServerSideFilterDeps): ServerSideFilter {
  const { session, moves, features } = deps;

  return async (call, request, plan, next) => {
    const { collection, version } = request;
    const told = moves.of(collection).position;
    const departed = version === undefined ? { version: NEVER, told } : { version, told: TOLD_NOTHING };
    const asked = { ...request, told, departed };
    const { reply, ...filter } =
      plan === WHOLE ? { reply: await next(call), serverFilter: NO_SERVER_FILTER } : await sendPlan(call, plan, next, deps);
    if (reply.status === 200 && enforcedNow(session).view(collection.group, collection.resource).isMoving) {
      discardBody(reply.body);
      noteDecision(call.record, "fenced", "moving");
      throw resourceMoves();
    }
    if (plan === WHOLE) return { reply, sent: { ...asked, ...filter } };
    // Never "labels": without a label selector, each object that leaves the subset by a change of labels
    // would make the client list again.
    const onIgnored = () => features.lacks(collection, filter.serverFilter.shards === undefined ? "fields" : "shards", "ignored");
    return { reply, sent: { ...asked, ...filter, onIgnored } };
  };
}

interface PlanSent {
  readonly reply: Reply;
  readonly plan: PlanName;
  readonly serverFilter: HidingQuery;
}

async function sendPlan(call: ResourceCall, plan: QueryPlan, next: Handler, deps: ServerSideFilterDeps): Promise<PlanSent> {
  const { moves, metrics, features, plans } = deps;
  const { info } = call;
  const query = fitted(call, plan, queryFor(plan, unusable(call, plan, features)), deps);
  if (mayHideUnknown(query)) moves.of(info).hideUnknown();

  const served = (sent: ResourceCall, reply: Reply, serverFilter: FilterQuery): PlanSent => {
    const name = planName(serverFilter.namespacePlan, serverFilter.labelSelector !== undefined);
    call.record.plan = name;
    metrics.narrowed.inc({ plan: name });
    const { namespaces = { own: 0, foreign: 0 } } = plan;
    plans.record(sent, { plan: name, namespaces, notSent: serverFilter.notSent, status: reply.status });
    return { reply, plan: name, serverFilter };
  };
  const sent = withFilterQuery(call, query);
  const first = await next(sent);
  const suspect = query.features.at(-1);
  if (suspect === undefined) return served(sent, first, query);
  const { isRefused, reply } = await readRefusal(first, suspect);
  if (!isRefused) return served(sent, reply, query);
  // The API server refuses the proxy's selectors or the caller's: the call without the proxy's shows which.
  discardBody(reply.body);
  const refused = query.features.map((feature): NotSent => ({ feature, why: "refused" }));
  const plain = queryFor(plan, [...query.notSent, ...refused]);
  const second = await next(call);
  // "Too long" is about this one URL, and most of it may be the caller's.
  const isTooLong = reply.status === 414 || reply.status === 431;
  if (!isTooLong && !isRefusal(second.status)) features.lacks(info, suspect, "refused");
  return served(call, second, plain);
}

// Codes by which a server, or a proxy in front of it, refuses a query.
function isRefusal(status: number): boolean {
  return status === 400 || status === 414 || status === 431;
}

// kube-apiserver answers a shard selector that it cannot read with a 500, in any encoding.
async function readRefusal(reply: Reply, suspect: Feature): Promise<{ readonly isRefused: boolean; readonly reply: Reply }> {
  if (reply.status !== 500 || suspect !== "shards") return { isRefused: isRefusal(reply.status), reply };
  const body = await readBody(reply.body, MAX_ERROR_BYTES);
  return { isRefused: Buffer.from(body).includes("shard selector"), reply: { ...reply, body } };
}

/** The part of a plan that is sent. */
interface FilterQuery extends HidingQuery {
  /** How the query as it is sent limits namespaces. */
  readonly namespacePlan: NamespacePlan;
  readonly labelSelector: string | undefined;
  /** "" if there is none. */
  readonly fieldSelector: string;
  readonly shards: ShardPlan | undefined;
  /** The rarest last: if the server refuses the query, the last one is suspected. */
  readonly features: readonly Feature[];
  readonly notSent: readonly NotSent[];
}

function featuresOf({ labelSelector, fieldSelector, shards }: QueryPlan): Feature[] {
  const features: Feature[] = [];
  if (labelSelector !== undefined) features.push("labels");
  if (fieldSelector !== "") features.push("fields");
  if (shards !== undefined) features.push("shards");
  return features;
}

/** The parts of the plan that the server lacks, and a shard selector if the caller has one. */
function unusable({ info }: ResourceCall, plan: QueryPlan, { lackOf }: ServerFeatures): NotSent[] {
  return featuresOf(plan).flatMap((feature): NotSent[] => {
    const isOwn = feature === "shards" && info.query.has("shardSelector");
    const why = isOwn ? "callers-own" : lackOf(info, feature);
    return why === undefined ? [] : [{ feature, why }];
  });
}

function queryFor(plan: QueryPlan, notSent: readonly NotSent[]): FilterQuery {
  const features = featuresOf(plan).filter((feature) => !notSent.some((part) => part.feature === feature));
  const fieldSelector = features.includes("fields") ? plan.fieldSelector : "";
  const shards = features.includes("shards") ? plan.shards : undefined;
  const namesNamespaces = plan.isByPath === true || fieldSelector !== "";
  return {
    namespacePlan: namesNamespaces || shards !== undefined ? plan.namespacePlan : "none",
    labelSelector: features.includes("labels") ? plan.labelSelector : undefined,
    fieldSelector,
    shards,
    only: namesNamespaces ? plan.only : undefined,
    excluded: fieldSelector === "" ? [] : excludedNamespaces(plan),
    features,
    notSent,
  };
}

/** The query with fewer ranges, or with none, where the caller's selectors leave little room. */
function fitted(call: ResourceCall, plan: QueryPlan, query: FilterQuery, { session }: ServerSideFilterDeps): FilterQuery {
  if (query.shards === undefined) return query;
  const over = withFilterQuery(call, query).target.length - MAX_TARGET_BYTES;
  if (over <= 0) return query;
  const view = readViewOf(enforcedNow(session).view(call.info.group, call.info.resource));
  const shardBytes = encodeShards(query.shards.selector).length - over;
  const { shards } = planQuery(view, plan.scope, { oneNamespace: false, shardBytes });
  if (shards !== undefined) return { ...query, shards };
  return queryFor(plan, [...query.notSent, { feature: "shards", why: "too-long" }]);
}

function withFilterQuery(call: ResourceCall, { labelSelector, fieldSelector, shards, features }: FilterQuery): ResourceCall {
  if (features.length === 0) return call;
  const query = new URLSearchParams(call.info.query);
  if (labelSelector !== undefined) query.set("labelSelector", joinSelectors(query.get("labelSelector"), labelSelector));
  if (fieldSelector !== "") query.set("fieldSelector", joinSelectors(query.get("fieldSelector"), fieldSelector));
  const parts = [query.toString(), shards === undefined ? "" : `shardSelector=${encodeShards(shards.selector)}`];
  return withTarget(call, `${call.info.path}?${parts.filter((part) => part !== "").join("&")}`);
}

// RFC 3986 allows all its characters but "|" in a query. With all escaped it would be a quarter longer.
function encodeShards(selector: string): string {
  return selector.replaceAll("|", "%7C");
}
