// Writes a plan into the query of a call. Pure. Invariants: the query keeps the caller's own selectors, ANDed
// with the plan's; where the grammar has no AND, it keeps the caller's alone; a target with a shard selector
// has a bounded length.
import {
  type Capabilities,
  excludedNamespaces,
  type HidingQuery,
  joinSelectors,
  type NamespacePlan,
  type QueryPlan,
  type ShardPlan,
} from "../../../route/plan-query.ts";
import type { Feature, Lack } from "../../api-server/server-features.ts";
import { type Call, withTarget } from "../../call/call.ts";

/** The part of a plan that is sent. */
export interface FilterQuery extends HidingQuery {
  /** What the query really says about namespaces. */
  readonly namespacePlan: NamespacePlan;
  readonly labelSelector: string | undefined;
  readonly fieldSelector: string | undefined;
  readonly shards: ShardPlan | undefined;
  readonly isByPath: boolean;
  /** The rarest last: if the server refuses the query, the last one is the first suspect. */
  readonly features: readonly Feature[];
  readonly notSent: readonly NotSent[];
}

/** A part that was planned and not sent, with the reason. */
export interface NotSent {
  readonly feature: Feature;
  readonly why: Lack | "callers-own" | "too-long";
}

/**
 * Bound of a target with a shard selector. kube-apiserver takes a megabyte. A proxy in front of it often
 * takes 8 KiB for the request line (nginx), which has the method and the version beside the target.
 */
export const MAX_TARGET_BYTES = 8_000;

/**
 * The query for a plan, without the features that the server lacks and without a second shard selector.
 * @param lackOf the reason not to use a feature; undefined to use it
 */
export function filterQueryFor(call: Call, plan: QueryPlan, lackOf: (feature: Feature) => Lack | undefined): FilterQuery {
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
  const features: Feature[] = [];
  if (labelSelector !== undefined) features.push("labels");
  if (fieldSelector !== undefined) features.push("fields");
  if (shards !== undefined) features.push("shards");
  const hidesNamespaces = isByPath || fieldSelector !== undefined || shards !== undefined;
  return {
    namespacePlan: hidesNamespaces ? plan.namespacePlan : "none",
    labelSelector,
    fieldSelector,
    shards,
    only: isByPath || fieldSelector !== undefined ? plan.only : undefined,
    isByPath,
    excluded: fieldSelector === undefined ? [] : excludedNamespaces(plan),
    features,
    notSent,
  };
}

/**
 * The query with fewer ranges, or without ranges or names of namespaces, where the caller's selectors leave
 * little room.
 */
export function fitQuery(call: Call, query: FilterQuery, replan: (capabilities: Capabilities) => QueryPlan): FilterQuery {
  if (query.shards === undefined) return query;
  const over = withFilterQuery(call, query).target.length - MAX_TARGET_BYTES;
  if (over <= 0) return query;
  const shardBytes = encodeShards(query.shards.selector).length - over;
  const { shards } = replan({ oneNamespace: false, shardBytes });
  if (shards !== undefined) return { ...query, shards };
  return {
    ...query,
    shards,
    namespacePlan: "none",
    features: query.features.filter((each) => each !== "shards"),
    notSent: [...query.notSent, { feature: "shards", why: "too-long" }],
  };
}

/** The query without any selector of the proxy, after a refusal. */
export function plainQuery(query: FilterQuery): FilterQuery {
  const { isByPath } = query;
  return {
    namespacePlan: isByPath ? "one-namespace" : "none",
    labelSelector: undefined,
    fieldSelector: undefined,
    shards: undefined,
    only: isByPath ? query.only : undefined,
    isByPath,
    excluded: [],
    features: [],
    notSent: [...query.notSent, ...query.features.map((feature): NotSent => ({ feature, why: "refused" }))],
  };
}

/** The call with the query. */
export function withFilterQuery(call: Call, filterQuery: FilterQuery): Call {
  const { labelSelector, fieldSelector, shards, features } = filterQuery;
  if (features.length === 0) return call;
  const query = new URLSearchParams(call.info.query);
  if (labelSelector !== undefined) query.set("labelSelector", joinSelectors(query.get("labelSelector"), labelSelector));
  if (fieldSelector !== undefined) query.set("fieldSelector", joinSelectors(query.get("fieldSelector"), fieldSelector));
  const parts = [query.toString(), shards === undefined ? "" : `shardSelector=${encodeShards(shards.selector)}`];
  return withTarget(call, `${call.info.path}?${parts.filter((part) => part !== "").join("&")}`);
}

// RFC 3986 allows all of its characters but one in a query. Escaped, the selector would be a quarter longer.
function encodeShards(selector: string): string {
  return selector.replaceAll("|", "%7C");
}
