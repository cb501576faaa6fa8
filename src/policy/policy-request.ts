// A request as policies see it. Pure. Invariant: a request counts as each action whose effect it may have, so
// that no other verb or subresource evades a rule.
import type { ReviewSubject } from "../kube/admission-review.ts";
import type { RequestInfo, ResourceInfo } from "../kube/request-info.ts";

export interface Action {
  readonly verb: string;
  readonly group: string;
  /** `pods`, or `pods/status`. */
  readonly resource: string;
  /** "" for cluster-scoped objects and for all namespaces. */
  readonly namespace: string;
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

export interface PolicyRequest {
  /** No action if the request is for no resource of the API server. */
  readonly actions: readonly Action[];
  /** The path without query, only for a request to the API server that is for no resource. */
  readonly path?: string;
  /** Only for a request to another server. */
  readonly egress?: EgressTarget;
  /** Only for a review of the operator's admission webhooks. */
  readonly admission?: AdmissionSubject;
  readonly method: string;
  readonly isLock: boolean;
  /** It costs all tokens of a full bucket, since it deletes many objects. */
  readonly isBulk: boolean;
  /** Verb and object: failures are counted for each key. */
  readonly key: string;
}

/** Anybody can send long names, and a limiter keeps the keys of failures. */
const MAX_KEY_LENGTH = 1_024;

export function policyRequestOf(info: RequestInfo, isLock: boolean): PolicyRequest {
  const { method } = info;
  if (info.kind === "non-resource") {
    return { actions: [], path: info.path, method, isLock: false, isBulk: false, key: `${method} ${info.path}` };
  }
  const isBulk = info.verb === "deletecollection";
  const key = `${info.verb} ${info.group}/${resourceOf(info)} ${info.namespace}/${info.name}`;
  return { actions: actionsOf(info), method, isLock, isBulk, key };
}

/** A tunnel is one request `CONNECT https://host:port/`: rules see nothing of what is inside. */
export function egressRequestOf(method: string, egress: EgressTarget): PolicyRequest {
  const key = `${method} ${egress.host}${egress.path ?? "/"}`.slice(0, MAX_KEY_LENGTH);
  return { actions: [], egress, method, isLock: false, isBulk: false, key };
}

/** Only rules about admission match a review, which is no request of the operator. */
export function reviewRequestOf({ resource: { group, version, resource }, ...review }: ReviewSubject): PolicyRequest {
  const { subresource, operation, namespace, name } = review;
  // The review of a Namespace names it as its namespace too.
  const isNamespaced = namespace !== "" && !(group === "" && resource === "namespaces");
  const admission = { group, version, resource, subresource, operation, isNamespaced };
  const key = `${operation} ${group}/${resource} ${namespace}/${name}`.slice(0, MAX_KEY_LENGTH);
  return { actions: [], admission, method: "POST", isLock: false, isBulk: false, key };
}

function resourceOf({ resource, subresource }: ResourceInfo): string {
  return subresource === "" ? resource : `${resource}/${subresource}`;
}

function actionsOf(info: ResourceInfo): Action[] {
  const { verb, group, namespace } = info;
  const own: Action = { verb, group, resource: resourceOf(info), namespace };
  const deletes = verb === "deletecollection" || isEviction(info);
  return deletes ? [own, { verb: "delete", group, resource: info.resource, namespace }] : [own];
}

/** The eviction deletes the pod if the budgets permit it (policy/v1 Eviction). */
function isEviction({ verb, group, resource, subresource }: ResourceInfo): boolean {
  return verb === "create" && group === "" && resource === "pods" && subresource === "eviction";
}
