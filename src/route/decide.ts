// The one decision about a request: pass, refuse, wait, or narrow. Pure: facts in, decision out. Called by the proxy's
// isolate layer; the rules are in docs/design.md, "Who owns what".
import type { ResourceInfo } from "../kube/request-info.ts";
import { planNothing, planQuery, type QueryPlan, type Scope } from "./plan-query.ts";
import { governingNamespace, isNamespaces, type ResourceView } from "./snapshot.ts";
import { ownerText } from "./table.ts";

export type Decision =
  | { readonly kind: "allow" }
  /** `moving` is a refusal that a retry may overcome. */
  | { readonly kind: "refuse"; readonly why: "foreign" | "moving" | "not-narrowable"; readonly message: string }
  /** Nobody has said yet who owns the namespace: wait, then decide again. */
  | { readonly kind: "hold"; readonly namespace: string }
  /** Pass with the plan's query, and filter the answer by the view. */
  | { readonly kind: "narrow"; readonly plan: QueryPlan };

const ALLOW: Decision = { kind: "allow" };

// Reviews change nothing and return no objects; every subset asks them about itself.
const REVIEW_GROUPS = new Set(["authentication.k8s.io", "authorization.k8s.io"]);

/** Decides about a request for a resource. `scope` is only asked for collections over all namespaces. */
export function decide(view: ResourceView, info: ResourceInfo, scope: Scope): Decision {
  if (REVIEW_GROUPS.has(info.group) || (view.whole && (view.undivided || !isNodeProxy(info)))) return ALLOW;
  if (info.verb === "list" || info.verb === "watch") return decideRead(view, info, scope);
  if (info.verb === "deletecollection" && info.namespace === "") return decideDeleteAll(view, info, scope);
  if (isNodeProxy(info)) {
    const message = `${describe(info)}: a node's proxy reaches the pods of every namespace, and this subset owns only a part of them`;
    return { kind: "refuse", why: "not-narrowable", message };
  }
  return decideObject(view, info);
}

function decideObject(view: ResourceView, info: ResourceInfo): Decision {
  const namespace = governingNamespace(info.group, info.resource, info);
  const standing = view.standing(namespace);
  switch (standing) {
    case "mine":
      return ALLOW;
    case "unknown":
      return { kind: "hold", namespace };
    case "moving":
    case "foreign": {
      const where = namespace === "" ? "cluster-scoped objects of this resource belong" : `namespace "${namespace}" belongs`;
      return { kind: "refuse", why: standing, message: `${describe(info)}: ${where} to ${ownerText(view.ownerOf(namespace))}` };
    }
    default:
      return standing satisfies never;
  }
}

function decideRead(view: ResourceView, info: ResourceInfo, scope: Scope): Decision {
  if (info.namespace === "" || isNamespaces(info)) return { kind: "narrow", plan: planQuery(view, scope) };
  const standing = view.standing(info.namespace);
  if (standing === "mine") return ALLOW;
  if (standing === "unknown") return { kind: "hold", namespace: info.namespace };
  return { kind: "narrow", plan: planNothing(info.namespace) };
}

function decideDeleteAll(view: ResourceView, info: ResourceInfo, scope: Scope): Decision {
  if (scope === "cluster" && !isNamespaces(info)) return decideObject(view, info);
  const message = `${describe(info)}: the query cannot say which namespaces this subset owns; delete by namespace instead`;
  return { kind: "refuse", why: "not-narrowable", message };
}

function isNodeProxy(info: ResourceInfo): boolean {
  return info.group === "" && info.resource === "nodes" && info.subresource.startsWith("proxy");
}

function describe(info: ResourceInfo): string {
  const resource = info.group === "" ? info.resource : `${info.resource}.${info.group}`;
  const target = info.name === "" ? resource : `${resource} "${info.name}"`;
  return `ctrlmesh: ${info.verb} ${info.subresource === "" ? target : `${target} (${info.subresource})`}`;
}
