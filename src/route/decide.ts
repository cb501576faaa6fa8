// The one decision about a request: pass, refuse, wait, judge, or narrow. Pure: facts in, decision out. Called by the proxy's
// isolate layer; the rules are in docs/design.md, "Who owns what".
import type { ResourceInfo } from "../kube/request-info.ts";
import { type Planner, planNothing, planQuery, type QueryPlan, type Scope } from "./plan-query.ts";
import { governingNamespace, isNamespaces, type ObjectFilter, type ResourceView } from "./snapshot.ts";
import { type Owner, ownerText } from "./table.ts";

export type Decision =
  | { readonly kind: "allow" }
  /** `moving` is a refusal that a retry may overcome. */
  | { readonly kind: "refuse"; readonly why: "foreign" | "moving" | "not-narrowable"; readonly message: string }
  /** Nobody has said yet who owns the namespace: wait, then decide again. */
  | { readonly kind: "hold"; readonly namespace: string }
  /** The namespace is the subset's and labels decide: the object has to be looked at, `deletecollection` to be narrowed by them. */
  | { readonly kind: "judge"; readonly objects: ObjectFilter }
  /** Pass with the plan's query, and filter the answer by the view. */
  | { readonly kind: "narrow"; readonly plan: QueryPlan };

const MOVES = "the resource is moving between subsets";
const ALLOW: Decision = { kind: "allow" };

// Reviews change nothing and return no objects; every subset asks them about itself.
const REVIEW_GROUPS = new Set(["authentication.k8s.io", "authorization.k8s.io"]);

/** Decides about a request for a resource. `scope` is only asked for collections over all namespaces; `plan` may remember. */
export function decide(view: ResourceView, info: ResourceInfo, scope: Scope, plan: Planner = planQuery): Decision {
  if (isReview(info) || (view.whole && (view.undivided || !isNodeProxy(info)))) return ALLOW;
  if (info.verb === "list" || info.verb === "watch") return decideRead(view, info, scope, plan);
  if (info.verb === "deletecollection" && info.namespace === "") return decideDeleteAll(view, info, scope);
  if (isNodeProxy(info)) {
    const message = `${describe(info)}: a node's proxy reaches the pods of every namespace, and this subset owns only a part of them`;
    return { kind: "refuse", why: "not-narrowable", message };
  }
  return decideObject(view, info);
}

/** True for a review of access or of a token. */
export function isReview({ group }: ResourceInfo): boolean {
  return REVIEW_GROUPS.has(group);
}

function decideObject(view: ResourceView, info: ResourceInfo): Decision {
  const namespace = governingNamespace(info.group, info.resource, info);
  const standing = view.standing(namespace);
  switch (standing) {
    case "mine":
      return view.objects === undefined ? ALLOW : { kind: "judge", objects: view.objects };
    case "unknown":
      return { kind: "hold", namespace };
    case "moving":
    case "foreign": {
      const owner = view.ownerOf(namespace);
      const isByLabels = owner.kind === "labels" || namespace === "";
      const what = namespace === "" ? "cluster-scoped objects of this resource" : "objects of this resource";
      const where = isByLabels ? `${what} belong` : `namespace "${namespace}" belongs`;
      return { kind: "refuse", why: standing, message: `${describe(info)}: ${where} to ${ownerText(owner)}` };
    }
    default:
      return standing satisfies never;
  }
}

function decideRead(view: ResourceView, info: ResourceInfo, scope: Scope, planner: Planner): Decision {
  // An empty list would tell an informer that everything has been deleted, most of which stays where it was.
  if (view.isMoving) return { kind: "refuse", why: "moving", message: `${describe(info)}: ${MOVES}` };
  if (info.namespace === "" || isNamespaces(info)) return { kind: "narrow", plan: planner(view, scope) };
  const standing = view.standing(info.namespace);
  if (standing === "mine") return view.objects === undefined ? ALLOW : { kind: "narrow", plan: planner(view, "unknown") };
  if (standing === "unknown") return { kind: "hold", namespace: info.namespace };
  return { kind: "narrow", plan: planNothing(info.namespace) };
}

function decideDeleteAll(view: ResourceView, info: ResourceInfo, scope: Scope): Decision {
  if (scope === "cluster" && !isNamespaces(info)) return decideObject(view, info);
  // In every namespace, known or not, labels alone decide.
  if (view.byLabelsOnly && view.objects !== undefined) return { kind: "judge", objects: view.objects };
  const message = `${describe(info)}: the query cannot say which namespaces this subset owns; delete by namespace instead`;
  return { kind: "refuse", why: "not-narrowable", message };
}

function isNodeProxy(info: ResourceInfo): boolean {
  return info.group === "" && info.resource === "nodes" && info.subresource.startsWith("proxy");
}

/** The refusal of one object by its labels. `how` says which one is meant where a request has two, the old and the new. */
export function foreignObject(info: ResourceInfo, owner: Owner, how: string): string {
  return `${describe(info)}: ${how} belongs to ${ownerText(owner)}`;
}

/** What a request is about, for messages. */
function describe(info: ResourceInfo): string {
  const resource = info.group === "" ? info.resource : `${info.resource}.${info.group}`;
  const target = info.name === "" ? resource : `${resource} "${info.name}"`;
  return `ctrlmesh: ${info.verb} ${info.subresource === "" ? target : `${target} (${info.subresource})`}`;
}
