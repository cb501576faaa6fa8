// A request as policies see it. Pure. Invariants: a request counts as each action whose effect it may have, so
// that no other verb, subresource or spelling evades a rule; what is kept of it is bounded in bytes.
import { once } from "../base/remember.ts";
import type { ReviewSubject } from "../kube/admission-review.ts";
import { firstSubresource, type RequestInfo, type ResourceInfo } from "../kube/request-info.ts";
import { pathForm } from "./path-form.ts";

export interface Action {
  readonly verb: string;
  readonly group: string;
  /** `pods`, or `pods/status`. What follows a subresource (`proxy/metrics`) is no part of it. */
  readonly resource: string;
  /** "" for cluster-scoped objects and for all namespaces. For a Namespace, its own name. */
  readonly namespace: string;
  /** "" for collections, unless a field selector names one object, and for creates. */
  readonly name: string;
}

export interface EgressTarget {
  readonly scheme: "http" | "https";
  /** A name or an address in lower case, without brackets and without a final dot. */
  readonly host: string;
  readonly port: number;
  /** The path as it was sent, without query. Undefined for a tunnel, whose content is not visible. */
  readonly path: string | undefined;
  /** The query with its question mark; "" for none. */
  readonly query: string;
  /** The headers by their names in lower case. Empty for a tunnel. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

type ReviewedResource = ReviewSubject["resource"] & Pick<ReviewSubject, "subresource" | "operation">;

export interface AdmissionSubject extends ReviewedResource {
  readonly isNamespaced: boolean;
}

/** How many objects of a resource the pod may see. */
export interface Population {
  readonly total: number;
  /** "" for cluster-scoped objects. */
  readonly byNamespace: ReadonlyMap<string, number>;
  /** The caller may not list all namespaces, and nobody knows what is in others than these. */
  readonly isPartial?: true;
}

export interface PolicyRequest {
  /** No action if the request is for no resource of the API server. */
  readonly actions: readonly Action[];
  /** The path as it was sent, without query, only for a request to the API server that is for no resource. */
  readonly path?: string;
  /** Only for a request to another server. */
  readonly egress?: EgressTarget;
  /** Only for a review of the operator's admission webhooks. */
  readonly admission?: AdmissionSubject;
  readonly method: string;
  /** Names the caller, as far as the request tells. Absent for requests to other servers and for reviews. */
  readonly user?: () => string;
  /** The objects of the request's resource; undefined while they are not counted. Absent: they never are. */
  readonly population?: (() => Population | undefined) | undefined;
  /** The operator may lose its leadership without it. */
  readonly isLock: boolean;
  /** It costs all tokens of a full bucket, since it deletes many objects. */
  readonly isBulk: boolean;
  /** Verb and object, of bounded length: failures are counted for each key. */
  readonly key: string;
}

/** The locks of leader electors. Only a rule that names this resource applies to them. */
export const LEASES = { group: "coordination.k8s.io", resource: "leases" };

/** Longer than that of any object. Anybody can send long names, and a limiter keeps the keys of failures. */
const MAX_KEY_LENGTH = 1_024;

export function policyRequestOf(info: RequestInfo, isLock: boolean, user = () => ""): PolicyRequest {
  const { method } = info;
  if (info.kind === "non-resource") {
    const key = bounded(`${method} ${pathForm(info.path, MAX_KEY_LENGTH)}`);
    return { actions: [], path: info.path, method, isLock: false, isBulk: false, key };
  }
  const isBulk = info.verb === "deletecollection";
  const key = bounded(`${info.verb} ${info.group}/${resourceOf(info)} ${info.namespace}/${info.name}`);
  return { actions: actionsOf(info), method, user: once(user), isLock, isBulk, key };
}

/**
 * True for requests of leader electors for leases in this namespace. Electors use no deletecollection, which
 * would take the leases of all others too.
 */
export function isLeaseIn(namespace: string, info: RequestInfo): boolean {
  if (info.kind === "non-resource" || info.group !== LEASES.group || info.resource !== LEASES.resource) return false;
  return info.namespace === namespace && info.verb !== "deletecollection";
}

/** A tunnel is one request `CONNECT https://host:port/`: rules see nothing of what is inside. */
export function egressRequestOf(method: string, egress: EgressTarget): PolicyRequest {
  const key = bounded(`${method} ${egress.host}${pathForm(egress.path ?? "/", MAX_KEY_LENGTH)}`);
  return { actions: [], egress, method, isLock: false, isBulk: false, key };
}

/** Only rules about admission match a review, which is no request of the operator. */
export function reviewRequestOf({ resource: { group, version, resource }, ...review }: ReviewSubject): PolicyRequest {
  const { subresource, operation, namespace, name } = review;
  // The review of a Namespace names it as its namespace too.
  const isNamespaced = namespace !== "" && !(group === "" && resource === "namespaces");
  const admission = { group, version, resource, subresource, operation, isNamespaced };
  const key = bounded(`${operation} ${group}/${resource} ${namespace}/${name}`);
  return { actions: [], admission, method: "POST", isLock: false, isBulk: false, key };
}

/** True for a Namespace and its subresources. */
export function isNamespaceObject({ group, resource, namespace }: Action): boolean {
  return namespace !== "" && group === "" && (resource === NAMESPACES || resource.startsWith(`${NAMESPACES}/`));
}

const NAMESPACES = "namespaces";

/** A copy: a part of a text keeps the whole text in memory. */
export function bounded(key: string): string {
  return key.length <= MAX_KEY_LENGTH ? key : Buffer.from(key.slice(0, MAX_KEY_LENGTH), "utf16le").toString("utf16le");
}

function resourceOf(info: ResourceInfo): string {
  const subresource = firstSubresource(info);
  return subresource === "" ? info.resource : `${info.resource}/${subresource}`;
}

function actionsOf(info: ResourceInfo): Action[] {
  const { verb, group, namespace, name } = info;
  const own: Action = { verb, group, resource: resourceOf(info), namespace, name };
  const deletes = verb === "deletecollection" || isEviction(own);
  return deletes ? [own, { ...own, verb: "delete", resource: info.resource }] : [own];
}

/** The eviction deletes the pod if the budgets permit it (policy/v1 Eviction). */
function isEviction({ verb, group, resource }: Action): boolean {
  return verb === "create" && group === "" && resource === "pods/eviction";
}
