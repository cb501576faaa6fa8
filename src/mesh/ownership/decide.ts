// Decides about one request: allow, refuse, hold, check labels, or narrow. Pure; docs/design.md has the rules
// ("Who owns what"). Invariant: only lists, watches and plain gets go by the read view; whatever may change
// something, or may reach into a pod, goes by what the subset owns.
import { plainText } from "../../base/plain-text.ts";
import { BUCKETS, CLUSTER_SCOPE, isBucket } from "../../kube/place.ts";
import type { ResourceInfo } from "../../kube/request-info.ts";
import { isListOrWatch, isPlainGet } from "../../kube/request-kind.ts";
import { accessTo } from "./clusters.ts";
import { hidingCluster, mayCreateHidden, mayHide } from "./hidden-objects.ts";
import type { Owner } from "./owners.ts";
import { type Planner, planNothing, planQuery, type QueryPlan, type ResourceScope, WHOLE } from "./plan-query.ts";
import { governingPlace, isNamespaces, type LabelFilter, type ResourceView, readViewOf } from "./snapshot.ts";
import { ownerText, subsetText } from "./words.ts";

export type Decision =
  | { readonly kind: "allow" }
  /** `moving` is a refusal that a retry may overcome. */
  | { readonly kind: "refuse"; readonly why: "other-subset" | "moving" | "not-narrowable"; readonly message: string }
  /** Somebody works in the namespace: no subset may write there. */
  | { readonly kind: "frozen"; readonly namespace: string; readonly message: string }
  /** The guard only warns: allow a write to an object that the subset does not own. */
  | { readonly kind: "warn"; readonly message: string }
  /** The owner of the namespace is unknown: wait, then decide again. */
  | { readonly kind: "hold"; readonly namespace: string }
  /** The labels decide: the caller reads those of the object, or narrows a `deletecollection` by them. */
  | { readonly kind: "check-labels"; readonly objects: LabelFilter }
  /** Send the call with the plan's query, and filter the answer by the view. */
  | { readonly kind: "narrow"; readonly queryPlan: QueryPlan };

const HANDOVER = "a handover runs";

/** The reason for a refusal where all of a resource moves. */
export const RESOURCE_MOVES = `${HANDOVER}: the resource moves between subsets`;

const ALLOW: Decision = { kind: "allow" };

// Every subset may send reviews, which change nothing and return no objects.
const REVIEW_GROUPS = new Set(["authentication.k8s.io", "authorization.k8s.io"]);

/** `scope` matters only for collections over all namespaces. */
export function decide(view: ResourceView, info: ResourceInfo, scope: ResourceScope, planner: Planner = planQuery): Decision {
  if (isReview(info)) return ALLOW;
  const frozen = refuseFrozen(view, info, scope);
  if (frozen !== undefined) return frozen;
  if (view.ownsAll && (view.hasNoRules || !isNodeProxy(info))) return ALLOW;
  if (isListOrWatch(info)) return decideRead(readViewOf(view), info, scope, planner);
  const hidden = refuseHidden(view, info);
  if (hidden !== undefined) return hidden;
  const reach = reachOf(info, scope);
  switch (reach) {
    case "place":
      return decideObject(isAct(info) ? view : readViewOf(view), info);
    case "new-namespace":
      return decideObject(view, { ...info, name: "" });
    case "cluster-scope": {
      const isSplit = view.ownershipOf(CLUSTER_SCOPE) === "own" && !isWithin(view, reach, CLUSTER_SCOPE);
      return isSplit ? decideDeleteAll(view, info, reach) : decideObject(view, info);
    }
    case "all-namespaces":
      return decideDeleteAll(view, info, reach);
    case "everything": {
      const message = `${describe(info)}: a node's proxy reaches the pods of every namespace, and this subset owns only a part of them`;
      return { kind: "refuse", why: "not-narrowable", message };
    }
    default:
      return reach satisfies never;
  }
}

/** The plan of a list or watch; undefined if it can be neither narrowed nor sent as it is. */
export function planOf(view: ResourceView, info: ResourceInfo, scope: ResourceScope, planner: Planner): QueryPlan | undefined {
  const decision = decide(view, info, scope, planner);
  if (decision.kind === "allow") return WHOLE;
  return decision.kind === "narrow" ? decision.queryPlan : undefined;
}

/**
 * True for whatever may change something or reach into a pod, by any verb: `exec`, `attach`, `portforward`
 * and `proxy` are gets where the client speaks WebSocket.
 */
export function isAct(info: ResourceInfo): boolean {
  return !isListOrWatch(info) && !isPlainGet(info) && !isReview(info);
}

/**
 * What a request reaches: one place, all cluster-scoped objects, all namespaces, or other resources too. A new namespace has
 * no owner yet, so the owner of the cluster scope creates it.
 */
export type Reach = "place" | "new-namespace" | "cluster-scope" | "all-namespaces" | "everything";

export function reachOf(info: ResourceInfo, scope: ResourceScope): Reach {
  if (isNodeProxy(info)) return "everything";
  if (isNewNamespace(info)) return "new-namespace";
  if (info.verb !== "deletecollection" || info.namespace !== "") return "place";
  return scope === "cluster" && !isNamespaces(info) ? "cluster-scope" : "all-namespaces";
}

/** The reach of a write in flight. `foreign`: an object of another subset, for which the guard only warns. */
export type WriteReach = Reach | "foreign";

/** True if the subset owns what the act reaches, apart from labels, or if the guard lets it pass, and nothing of it is frozen. */
export function isWithin(view: ResourceView, reach: WriteReach, namespace: string): boolean {
  switch (reach) {
    case "foreign":
      return view.guard === "Warn" && !isFrozen(view, namespace);
    case "place":
      return view.ownershipOf(namespace) === "own" && !isFrozen(view, namespace);
    case "new-namespace": // its name is known only while some namespace is frozen
      return view.ownershipOf(CLUSTER_SCOPE) === "own" && !(namespace === "" ? hasFrozen(view) : isFrozen(view, namespace));
    case "cluster-scope":
      return [CLUSTER_SCOPE, ...BUCKETS].every((place) => view.ownershipOf(place) === "own");
    case "all-namespaces": // known and unknown ones
      return (view.ownsAll || view.byLabelsOnly === true) && !hasFrozen(view);
    case "everything":
      return view.ownsAll && view.hasNoRules && !hasFrozen(view);
    default:
      return reach satisfies never;
  }
}

export function isReview({ group }: ResourceInfo): boolean {
  return REVIEW_GROUPS.has(group);
}

/** Who owns a frozen namespace does not matter: also the owner may only read. */
function refuseFrozen(view: ResourceView, info: ResourceInfo, scope: ResourceScope): Decision | undefined {
  const [first] = view.frozen?.keys() ?? [];
  if (first === undefined || !isAct(info)) return undefined;
  const reach = reachOf(info, scope);
  if (reach === "cluster-scope") return undefined;
  const isOne = reach === "place" || reach === "new-namespace";
  const namespace = isOne ? governingPlace(info.group, info.resource, info) : first;
  const reason = view.frozen?.get(namespace);
  if (reason === undefined) return undefined;
  const whole = isOne ? "" : "it reaches every namespace, and ";
  const cluster = view.inside === undefined ? "" : ` of cluster "${view.inside}"`;
  const message = `${describe(info)}: ${whole}namespace "${namespace}"${cluster} is frozen: ${plainText(reason)}`;
  return { kind: "frozen", namespace, message };
}

function refuseHidden(view: ResourceView, info: ResourceInfo): Decision | undefined {
  if (!mayHide(view.hidden, info)) return undefined;
  if (info.verb === "deletecollection") {
    const message = `${describe(info)}: this may reach objects that are for clusters of other subsets; delete by name instead`;
    return { kind: "refuse", why: "not-narrowable", message };
  }
  const cluster = hidingCluster(view.hidden, info);
  if (cluster === undefined) return undefined;
  const message = `${describe(info)}: the object is for cluster "${cluster.name}", which`;
  if (accessTo(cluster, cluster.owner) === "moving")
    return { kind: "refuse", why: "moving", message: `${message} moves to ${subsetText(cluster.owner)}` };
  return { kind: "refuse", why: "other-subset", message: `${message} belongs to ${subsetText(cluster.owner)}` };
}

/** True for a create of a namespace. Only the body contains its name. */
function isNewNamespace(info: ResourceInfo): boolean {
  return info.verb === "create" && !info.nameInPath && isNamespaces(info);
}

export function hasFrozen({ frozen }: ResourceView): boolean {
  return frozen !== undefined && frozen.size > 0;
}

export function isFrozen({ frozen }: Pick<ResourceView, "frozen">, namespace: string): boolean {
  return frozen?.has(namespace) === true;
}

function decideObject(view: ResourceView, info: ResourceInfo): Decision {
  const namespace = governingPlace(info.group, info.resource, info);
  const ownership = view.ownershipOf(namespace);
  switch (ownership) {
    case "own":
      return view.labelFilter === undefined ? ALLOW : { kind: "check-labels", objects: view.labelFilter };
    case "unknown":
      return { kind: "hold", namespace };
    case "moving":
      return refuseMoving(view, info, namespace);
    case "other-subset": {
      const owner = view.ownerOf(namespace);
      const message = `${describe(info)}: ${placeText(owner, namespace, "belong")} to ${ownerText(owner, namespace)}`;
      if (warnsOnly(view, info)) return { kind: "warn", message };
      return { kind: "refuse", why: ownership, message: message + shownText(view, namespace) };
    }
    default:
      return ownership satisfies never;
  }
}

/** True if the guard lets a call to a foreign object pass: a write of one object, or the get before it. */
export function warnsOnly({ guard }: ResourceView, info: ResourceInfo): boolean {
  return guard === "Warn" && (isAct(info) || isPlainGet(info)) && info.verb !== "deletecollection";
}

// The message names no previous owner, because the proxy does not know it.
function refuseMoving(view: ResourceView, info: ResourceInfo, namespace: string): Decision {
  const heir = view.isMoving ? undefined : view.nextOwnerOf?.(namespace);
  const what =
    heir === undefined
      ? RESOURCE_MOVES
      : `${HANDOVER}: ${placeText(heir, namespace, "move")} to ${ownerText(heir, namespace)}${shownText(view, namespace)}`;
  return { kind: "refuse", why: "moving", message: `${describe(info)}: ${what}` };
}

function placeText(owner: Owner, namespace: string, verb: string): string {
  if (namespace === CLUSTER_SCOPE) return `cluster-scoped objects of this resource ${verb}`;
  if (isBucket(namespace)) return `this cluster-scoped object ${verb}s`;
  return owner.kind === "labels" ? `objects of this resource ${verb}` : `namespace "${namespace}" ${verb}s`;
}

function shownText(view: ResourceView, namespace: string): string {
  const readView = readViewOf(view);
  if (readView.ownershipOf(namespace) !== "own") return "";
  const until = readView.isForMoment?.(namespace) === true ? "for a moment" : "until it is restarted";
  return `; this pod goes on showing it, read only, ${until}`;
}

function decideRead(view: ResourceView, info: ResourceInfo, scope: ResourceScope, planner: Planner): Decision {
  // From an empty list an informer would conclude that all objects were deleted.
  if (view.isMoving) return refuseMoving(view, info, "");
  if (info.namespace === "" || isNamespaces(info)) return { kind: "narrow", queryPlan: planner(view, scope) };
  const ownership = view.ownershipOf(info.namespace);
  if (ownership === "own") {
    const isWhole = view.labelFilter === undefined && !mayHide(view.hidden, info);
    return isWhole ? ALLOW : { kind: "narrow", queryPlan: planner(view, "unknown") };
  }
  if (ownership === "unknown") return { kind: "hold", namespace: info.namespace };
  if (ownership === "moving") return refuseMoving(view, info, info.namespace);
  return { kind: "narrow", queryPlan: planNothing(info.namespace) };
}

function decideDeleteAll(view: ResourceView, info: ResourceInfo, reach: Reach): Decision {
  // In every namespace, known or not, labels alone decide.
  if (view.byLabelsOnly && view.labelFilter !== undefined) return { kind: "check-labels", objects: view.labelFilter };
  const [what, by] = reach === "cluster-scope" ? ["objects", "name"] : ["namespaces", "namespace"];
  const message = `${describe(info)}: the query cannot say which ${what} this subset owns; delete by ${by} instead`;
  return { kind: "refuse", why: "not-narrowable", message };
}

function isNodeProxy(info: ResourceInfo): boolean {
  return info.group === "" && info.resource === "nodes" && info.subresource.startsWith("proxy");
}

/** The refusal of one object by its labels. `how` says whether it is the old or the new object of the request. */
export function refusedByLabels(info: ResourceInfo, owner: Owner, how: string): string {
  return `${describe(info)}: ${how} belongs to ${ownerText(owner)}`;
}

/** True for a create that is decided by the object's name, which only the body contains. */
export function isNamedByBody(view: ResourceView, info: ResourceInfo): boolean {
  if (isNewNamespace(info)) return hasFrozen(view);
  if (mayCreateHidden(view.hidden, info)) return !isReview(info);
  const { isByName, ownsAll } = view;
  const isUnnamed = info.verb === "create" && info.namespace === "" && info.name === "";
  return isByName === true && !ownsAll && isUnnamed && !isReview(info);
}

function describe(info: ResourceInfo): string {
  const resource = info.group === "" ? info.resource : `${info.resource}.${info.group}`;
  const target = info.name === "" ? resource : `${resource} "${info.name}"`;
  return `ctrlmesh: ${info.verb} ${info.subresource === "" ? target : `${target} (${info.subresource})`}`;
}
