// What a policy sees of a request. Pure. Invariant: a request counts as every action that it may have the effect of, so that no other
// verb or subresource leads around a rule.
import type { RequestInfo, ResourceInfo } from "../kube/request-info.ts";

/** One thing that a request does to objects. */
export interface Action {
  readonly verb: string;
  readonly group: string;
  /** `pods`, or `pods/status`. */
  readonly resource: string;
  /** "" for cluster-scoped objects and for all namespaces. */
  readonly namespace: string;
}

/** A request to the API server, as policies see it. */
export interface PolicyRequest {
  /** What the request does; none if it is for no resource. */
  readonly actions: readonly Action[];
  /** The path without query, if the request is for no resource. */
  readonly path?: string;
  readonly method: string;
  /** The request is for the operator's lock. */
  readonly isLock: boolean;
  /** It deletes many objects at once, so that it costs all tokens of a full bucket. */
  readonly isBulk: boolean;
  /** Names verb and object: failures are counted for each of them. */
  readonly key: string;
}

/** @param isLock the request is for the operator's lock */
export function policyRequestOf(info: RequestInfo, isLock: boolean): PolicyRequest {
  const { method } = info;
  if (info.kind === "non-resource") {
    return { actions: [], path: info.path, method, isLock: false, isBulk: false, key: `${method} ${info.path}` };
  }
  const isBulk = info.verb === "deletecollection";
  const key = `${info.verb} ${info.group}/${resourceOf(info)} ${info.namespace}/${info.name}`;
  return { actions: actionsOf(info), method, isLock, isBulk, key };
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

/** An eviction deletes the pod if the budgets permit it (policy/v1 Eviction). */
function isEviction({ verb, group, resource, subresource }: ResourceInfo): boolean {
  return verb === "create" && group === "" && resource === "pods" && subresource === "eviction";
}
