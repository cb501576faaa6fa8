// Plans server-side filtering: the part of a view that a query can express, cheapest first. Pure. Invariant:
// the query hides no object of the subset from the caller; proxy-side filtering checks every object again.
import { remember } from "../../base/remember.ts";
import { formatFieldTerm, parseFieldSelector } from "../../kube/field-selector.ts";
import { cutShards, formatShardSelector, isInRanges, type ShardRange } from "./shard-ranges.ts";
import type { ResourceView } from "./snapshot.ts";

/** Whether a resource is namespaced: only then does the API server know the field metadata.namespace. */
export type ResourceScope = "namespaced" | "cluster" | "unknown";

/** How the query selects namespaces; "by-namespace" is one query for each. */
export type NamespacePlan = "none" | "one-namespace" | "without-namespaces" | "shards" | "by-namespace" | "nothing";

/** For `ctrlmesh_proxy_pushdown_total{plan}`; "labels+" in front if the query has labels. */
export type PlanName = NamespacePlan | "labels" | `labels+${Exclude<NamespacePlan, "none">}`;

export interface QueryPlan {
  /** "unknown" if the plan does not depend on it. */
  readonly scope: ResourceScope;
  readonly namespacePlan: NamespacePlan;
  /** Terms to add to the caller's field selector; "" if there are none. */
  readonly fieldSelector: string;
  /** The only namespace of the answer, or NO_NAMESPACE; undefined if the answer may have several. */
  readonly only: string | undefined;
  /** The call's path names the namespace `only`, so that no field selector is needed. */
  readonly isByPath?: boolean;
  /** Terms to add to the caller's label selector. */
  readonly labelSelector?: string;
  readonly shards?: ShardPlan;
  /** The numbers of known namespaces; only for a namespaced resource over all namespaces. */
  readonly namespaces?: { readonly own: number; readonly foreign: number };
}

/** A plan without its scope and labels. */
type UnscopedPlan = Omit<QueryPlan, "scope" | "labelSelector">;

export interface ShardPlan {
  readonly selector: string;
  readonly ranges: readonly ShardRange[];
  /** The ranges may hide unknown namespaces. */
  readonly hidesUnknown: boolean;
}

/** What the API server understands. */
export interface ServerCapabilities {
  /** `metadata.namespace=x`; default true. */
  readonly oneNamespace?: boolean;
  /** Bytes that the shard selector may have; 0 if the server has none. Default `MAX_SHARD_BYTES`. */
  readonly shardBytes?: number;
}

export type Planner = (view: ResourceView, scope: ResourceScope) => QueryPlan;

/** With more excluded namespaces the URL becomes long and the selector slow. */
const MAX_EXCLUDED_NAMESPACES = 16;

/** The request target stays below 8 KiB (server-side-filter.ts), of which the caller has 1 KB. */
const MAX_SHARD_BYTES = 7_000;

/**
 * One range in the URL: `shardRange(object.metadata.namespace,'0x...','0x...')`, with 16 digits in each
 * bound, and `%7C%7C` between two ranges. The end of the last range, 2^64, may have a 17th digit.
 */
const SHARD_TERM_BYTES = 86;

/** Stands for the only namespace of an answer without objects. */
export const NO_NAMESPACE = "";

/** Stands for every unknown namespace: no namespace can have this name. */
const UNHEARD_OF = "/";

/**
 * Plans a list or watch over all namespaces. If the scope is not "namespaced", only labels can divide the
 * objects, and the plan has the scope "unknown".
 */
export function planQuery(view: ResourceView, scope: ResourceScope, capabilities: ServerCapabilities = {}): QueryPlan {
  const plan = scope === "namespaced" ? { ...planNamespaces(view, capabilities), scope } : NO_PLAN;
  return view.labelFilter === undefined ? plan : { ...plan, labelSelector: view.labelFilter.labelSelector };
}

/** A planner that remembers the plan of each view. */
export function createPlanner(): Planner {
  const planOf = remember((view: ResourceView) => planQuery(view, "namespaced"));
  return (view, scope) => (scope === "namespaced" ? planOf(view) : planQuery(view, scope));
}

/** Plans a list or watch in another subset's namespace: an empty answer with a real resourceVersion. */
export function planNothing(namespace: string): QueryPlan {
  return { ...NO_PLAN, namespacePlan: "nothing", fieldSelector: term(namespace, "!=") };
}

// The API server skips only these characters between the words of a selector.
const BLANK_SELECTOR = /^[ \t\r\n]*$/;

/** Both selectors joined by AND. They are label selectors or field selectors. */
export function joinSelectors(own: string | null, added: string): string {
  return own === null || BLANK_SELECTOR.test(own) ? added : `${own},${added}`;
}

/** The namespaces that the plan excludes by name. */
export function excludedNamespaces({ fieldSelector }: QueryPlan): string[] {
  if (!fieldSelector.includes("!=")) return [];
  return parseFieldSelector(fieldSelector).flatMap(({ operator, value }) => (operator === "!=" ? [value] : []));
}

/** If true, no plan may hide unknown namespaces. */
export function ownsUnknown(view: ResourceView): boolean {
  return view.ownershipOf(UNHEARD_OF) === "own";
}

// For a subset without namespaces: the terms contradict each other, and the first one limits the API server
// to one namespace. A watch with these terms shows no object of a namespace that the subset is granted later,
// so its client must list again then.
const NOWHERE: UnscopedPlan = {
  namespacePlan: "nothing",
  fieldSelector: `${term("default", "=")},${term("default", "!=")}`,
  only: NO_NAMESPACE,
};

export const NO_PLAN: QueryPlan = { scope: "unknown", namespacePlan: "none", fieldSelector: "", only: undefined };

/**
 * The plan of a list or watch that passes unchanged, because the subset owns all that it can show. Callers
 * tell it from NO_PLAN by identity: with NO_PLAN, the proxy still filters the answer.
 */
export const WHOLE: QueryPlan = { ...NO_PLAN };

function planNamespaces(
  view: ResourceView,
  { oneNamespace = true, shardBytes = MAX_SHARD_BYTES }: ServerCapabilities,
): UnscopedPlan {
  if (view.ownsAll) return NO_PLAN;
  const { own, others } = view.namespaces();
  const namespaces = { own: own.length, foreign: others.length };
  const isUnknownOwn = ownsUnknown(view);
  const [first] = own;
  if (!isUnknownOwn && first === undefined) return { ...NOWHERE, namespaces };
  if (oneNamespace && !isUnknownOwn && own.length === 1 && first !== undefined) {
    return { namespacePlan: "one-namespace", fieldSelector: term(first, "="), only: first, namespaces };
  }
  if (others.length > 0 && others.length <= MAX_EXCLUDED_NAMESPACES) {
    const fieldSelector = others.map((name) => term(name, "!=")).join(",");
    return { namespacePlan: "without-namespaces", fieldSelector, only: undefined, namespaces };
  }
  const maxRanges = Math.floor(shardBytes / SHARD_TERM_BYTES);
  const cut = maxRanges < 1 ? undefined : cutShards(own, others, { maxRanges, mayHideUnknown: !isUnknownOwn });
  if (cut === undefined) return { ...NO_PLAN, namespaces };
  const { ranges, hidesUnknown } = cut;
  const shards = { selector: formatShardSelector(ranges), ranges, hidesUnknown };
  return { namespacePlan: "shards", fieldSelector: "", only: undefined, shards, namespaces };
}

export function planName(namespaces: NamespacePlan, hasLabels: boolean): PlanName {
  if (!hasLabels) return namespaces;
  return namespaces === "none" ? "labels" : `labels+${namespaces}`;
}

function term(namespace: string, operator: "=" | "!="): string {
  return formatFieldTerm({ field: "metadata.namespace", operator, value: namespace });
}

/** True if the API server leaves the namespace's objects out when it is asked so. */
export function isHiddenBy({ only, excluded, shards }: HidingQuery, namespace: string): boolean {
  if (only !== undefined && namespace !== only) return true;
  return excluded.includes(namespace) || (shards !== undefined && !isInRanges(shards.ranges, namespace));
}

export interface HidingQuery {
  readonly only: string | undefined;
  readonly excluded: readonly string[];
  readonly shards?: Pick<ShardPlan, "ranges" | "hidesUnknown"> | undefined;
}

/** True if the query may leave out namespaces that are not known yet. */
export function mayHideUnknown({ only, shards }: Omit<HidingQuery, "excluded">): boolean {
  return only !== undefined || shards !== undefined;
}
