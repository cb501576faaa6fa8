// The push-down planner: which part of a view can be said in the query, so that the API server filters. Cheapest first.
// Invariant: the result is an intersection with what the caller asked, never wider, and the residual filter checks every
// object all the same.
import { formatFieldTerm } from "../kube/field-selector.ts";
import type { ResourceView } from "./snapshot.ts";

/** Whether a resource lives in namespaces; only then does the API server know the field metadata.namespace. */
export type Scope = "namespaced" | "cluster" | "unknown";

/** The name of a plan, as in the metric `ctrlmesh_proxy_pushdown_total{plan}`. */
export type PlanName = "none" | "one-namespace" | "without-namespaces" | "nothing";

export interface QueryPlan {
  readonly plan: PlanName;
  /** Terms to AND into the caller's field selector; "" if nothing is pushed down. */
  readonly fieldSelector: string;
  /** The only namespace that the answer can hold; undefined if new ones may appear in it. */
  readonly only: string | undefined;
}

/** At most this many foreign namespaces are excluded by name; more make the URL long and the selector slow. */
const MAX_EXCLUDED_NAMESPACES = 16;

const NO_PLAN: QueryPlan = { plan: "none", fieldSelector: "", only: undefined };

/** Plans a list or watch over all namespaces. */
export function planQuery(view: ResourceView, scope: Scope): QueryPlan {
  if (view.whole || scope !== "namespaced") return NO_PLAN;
  const { mine, others } = view.namespaces();
  const [first] = mine;
  if (mine.length === 1 && first !== undefined) {
    return { plan: "one-namespace", fieldSelector: term(first, "="), only: first };
  }
  if (others.length > 0 && others.length <= MAX_EXCLUDED_NAMESPACES) {
    return { plan: "without-namespaces", fieldSelector: others.map((name) => term(name, "!=")).join(","), only: undefined };
  }
  return NO_PLAN;
}

/** Plans a list or watch in one namespace that is not this subset's: an empty answer with a real resourceVersion. */
export function planNothing(namespace: string): QueryPlan {
  return { plan: "nothing", fieldSelector: term(namespace, "!="), only: undefined };
}

/** The caller's field selector AND the plan's. */
export function joinSelectors(own: string | null, added: string): string {
  return own === null || own === "" ? added : `${own},${added}`;
}

function term(namespace: string, operator: "=" | "!="): string {
  return formatFieldTerm({ field: "metadata.namespace", operator, value: namespace });
}
