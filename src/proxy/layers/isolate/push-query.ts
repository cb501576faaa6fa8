// What of a plan goes into the query, and how. Pure. Invariants: the caller's own selectors are only ever ANDed to, and one that
// cannot be is left alone; a target that carries a shard selector has a bounded length. Called by the push-down.
import {
  type Capabilities,
  excludedBy,
  joinSelectors,
  type NamespacePlan,
  type QueryPlan,
  type ShardPlan,
} from "../../../route/plan-query.ts";
import type { Feature, Lack } from "../../api-server/server-features.ts";
import type { Call } from "../../call/call.ts";
import { withTarget } from "../../call/query.ts";
import { NOTHING_PUSHED, type PushedDown } from "../../filter/watch-scope.ts";

/** What of a plan is sent. */
export interface PushQuery {
  /** How namespaces are told, as it is really sent. */
  readonly plan: NamespacePlan;
  readonly labelSelector: string | undefined;
  readonly fieldSelector: string | undefined;
  readonly shards: ShardPlan | undefined;
  /** As in the plan. */
  readonly only: string | undefined;
  readonly isByPath: boolean;
  readonly excluded: readonly string[];
  /** Most common first: of several, the last one is blamed first if the server refuses. */
  readonly pushes: readonly Feature[];
  readonly notSent: readonly NotSent[];
}

/** What was planned and not sent, and why. */
export interface NotSent {
  readonly feature: Feature;
  readonly why: Lack | "callers-own" | "too-long";
}

/**
 * Bound of a target that carries a shard selector. kube-apiserver itself takes a megabyte; what may stand in front of it often
 * takes no more than 8 KiB for the request line (nginx), which has the method and the version beside the target.
 */
export const MAX_TARGET_BYTES = 8_000;

/**
 * Leaves out what the server does not know, and a shard selector beside the caller's own: the grammar has no AND.
 * @param lackOf why the server is not asked in this way; undefined if it is
 */
export function pushQuery(call: Call, plan: QueryPlan, lackOf: (feature: Feature) => Lack | undefined): PushQuery {
  const notSent: NotSent[] = [];
  const isOwn = (feature: Feature) => feature === "shards" && call.info.query.has("shardSelector");
  const can = (feature: Feature) => {
    const why = isOwn(feature) ? "callers-own" : lackOf(feature);
    if (why !== undefined) notSent.push({ feature, why });
    return why === undefined;
  };
  const labelSelector = plan.labelSelector !== undefined && can("labels") ? plan.labelSelector : undefined;
  const fieldSelector = plan.fieldSelector !== "" && can("fields") ? plan.fieldSelector : undefined;
  const shards = plan.shards !== undefined && can("shards") ? plan.shards : undefined;
  const isByPath = plan.isByPath === true;
  const pushes: Feature[] = [];
  if (labelSelector !== undefined) pushes.push("labels");
  if (fieldSelector !== undefined) pushes.push("fields");
  if (shards !== undefined) pushes.push("shards");
  const hidesNamespaces = isByPath || fieldSelector !== undefined || shards !== undefined;
  return {
    plan: hidesNamespaces ? plan.plan : "none",
    labelSelector,
    fieldSelector,
    shards,
    only: isByPath || fieldSelector !== undefined ? plan.only : undefined,
    isByPath,
    excluded: fieldSelector === undefined ? [] : excludedBy(plan),
    pushes,
    notSent,
  };
}

/** The query with fewer ranges, or none, where the caller's selectors leave too little room. */
export function fitQuery(call: Call, query: PushQuery, replan: (capabilities: Capabilities) => QueryPlan): PushQuery {
  if (query.shards === undefined) return query;
  const over = withPushQuery(call, query).target.length - MAX_TARGET_BYTES;
  if (over <= 0) return query;
  const shardBytes = encodeShards(query.shards.selector).length - over;
  const { shards } = replan({ oneNamespace: false, shardBytes });
  if (shards !== undefined) return { ...query, shards };
  return {
    ...query,
    shards,
    plan: "none",
    pushes: query.pushes.filter((feature) => feature !== "shards"),
    notSent: [...query.notSent, { feature: "shards", why: "too-long" }],
  };
}

/** The query without anything of ours, after a refusal. */
export function plainQuery(query: PushQuery): PushQuery {
  const { isByPath } = query;
  return {
    plan: isByPath ? "one-namespace" : "none",
    labelSelector: undefined,
    fieldSelector: undefined,
    shards: undefined,
    only: isByPath ? query.only : undefined,
    isByPath,
    excluded: [],
    pushes: [],
    notSent: [...query.notSent, ...query.pushes.map((feature): NotSent => ({ feature, why: "refused" }))],
  };
}

/** The call with the query. */
export function withPushQuery(call: Call, { labelSelector, fieldSelector, shards, pushes }: PushQuery): Call {
  if (pushes.length === 0) return call;
  const query = new URLSearchParams(call.info.query);
  if (labelSelector !== undefined) query.set("labelSelector", joinSelectors(query.get("labelSelector"), labelSelector));
  if (fieldSelector !== undefined) query.set("fieldSelector", joinSelectors(query.get("fieldSelector"), fieldSelector));
  const parts = [query.toString(), shards === undefined ? "" : `shardSelector=${encodeShards(shards.selector)}`];
  return withTarget(call, `${call.info.path}?${parts.filter((part) => part !== "").join("&")}`);
}

/** What the query leaves out. */
export function pushedBy({ only, excluded, shards, labelSelector }: PushQuery): PushedDown {
  if (only === undefined && excluded.length === 0 && shards === undefined && labelSelector === undefined) return NOTHING_PUSHED;
  return {
    only,
    excluded,
    ...(shards === undefined ? {} : { ranges: shards.ranges, hidesUnknown: shards.hidesUnknown }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
  };
}

// All of its characters but one may stand in a query as they are (RFC 3986); escaped it would be a quarter longer.
function encodeShards(selector: string): string {
  return selector.replaceAll("|", "%7C");
}
