// A call of the outbound stack: a request from the operator to the Kubernetes API, with what the layers learn
// about it. Layers pass on changed copies; only `record` is shared and written. Invariant: `info` always
// belongs to `target`.
import { parseRequestInfo, type RequestInfo, type ResourceInfo } from "../../kube/request-info.ts";
import type { Permit } from "../../policy/engine/engine.ts";
import type { PlanName } from "../../route/plan-query.ts";
import type * as http from "../http/handler.ts";

/** What the layers note about a call while it passes, for each other, for metrics and for the access log. */
export interface CallRecord extends http.CallNotes {
  info?: RequestInfo;
  decision: "forwarded" | "narrowed" | "warned" | "refused" | "fenced";
  /** The reason for the decision, where it is not the ordinary way. */
  reason?: DecisionReason;
  /** The guard only warns: the subset does not own the object of this write. With the decision `warned`. */
  warning?: string;
  /** The entry of subsetDefaultOnlyUserAgents that excludes the caller from this subset. */
  excludedBy?: string;
  /** The client (kopf) treats listed objects differently: a gained object must come by a list. */
  tellsListsApart?: true;
  plan?: PlanName;
  /** The call is for the operator's lock. No layer limits, delays or narrows it. */
  lock: boolean;
  /** The call was sent to the API server, so the answer is not the proxy's own. */
  asked?: true;
  /** The rule of a policy that has refused the call: OBJECT/RULE. */
  rule?: string;
  /** Limits have let the call pass: what else the proxy asks to serve it passes too. */
  isAdmitted?: true;
  /** For limits that wait for the outcome; `atMs` (monotonic) is when they let the call pass. */
  charge?: { readonly permit: Permit; readonly atMs: number };
  /** The head of the answer is known, or there is none. */
  isAnswered?: true;
  /** The client's call that this one serves. Absent for the client's own. */
  serves?: CallRecord;
  /** Milliseconds of waiting for the API server or the manager, which is not the proxy's overhead. */
  waitedMs?: number;
}

/** Why a call was refused, fenced or turned back. Bounded, because it is a label. */
export type DecisionReason =
  | "other-subset"
  | "moving"
  | "unknown"
  | "not-narrowable"
  | "not-filterable"
  | "other-subset-lock"
  | "lock-changed"
  | "default-only-caller"
  | "list-again"
  | "upgrade"
  | "bad-request"
  | "no-snapshot"
  | "upstream"
  | "client-gone"
  | "limited"
  | "open"
  | "fault"
  | "internal";

/** A call before its request line is read. */
export type RawCall = http.HttpCall<CallRecord>;

/** A call with its request line read. `info` always belongs to `method` and `target`. */
export interface Call extends RawCall {
  readonly info: RequestInfo;
}

export type RawHandler = http.Handler<RawCall, http.Reply>;
export type Handler = http.Handler<Call, http.Reply>;
export type Layer = http.Layer<Call, http.Reply>;
/** A layer that works before anybody has read the request line. */
export type RawLayer = <C extends RawCall>(next: http.Handler<C, http.Reply>) => http.Handler<C, http.Reply>;

/** The record of a new call. @param serves the call for which the proxy sends this one */
export function createRecord(info?: RequestInfo, serves?: CallRecord): CallRecord {
  return {
    ...(info === undefined ? {} : { info }),
    decision: "forwarded",
    lock: false,
    ...(serves === undefined ? {} : { serves: clientsRecord(serves) }),
  };
}

/** The record of the client's call. */
export function clientsRecord(record: CallRecord): CallRecord {
  return record.serves ?? record;
}

/** Adds to the time that the call has waited for others. */
export function addWait(record: CallRecord, ms: number): void {
  record.waitedMs = (record.waitedMs ?? 0) + ms;
}

/** A call for objects of a resource. */
export type ResourceCall = Call & { readonly info: ResourceInfo };

/** True for a call for objects, false for discovery, health and the like. */
export function isResourceCall(call: Call): call is ResourceCall {
  return call.info.kind === "resource";
}

/** The call with a query parameter set; all values that it had before are replaced, other parameters stay. */
export function withParameter(call: Call, name: string, value: string): Call {
  const query = new URLSearchParams(call.info.query);
  query.set(name, value);
  return withQuery(call, query);
}

/** The call with another query. */
export function withQuery(call: Call, query: URLSearchParams): Call {
  return withTarget(call, `${call.info.path}?${query}`);
}

/** The call for the same resource in one namespace, with another query. */
export function inNamespace(call: Call, namespace: string, query: URLSearchParams): Call {
  const { info } = call;
  if (info.kind !== "resource") return call;
  const root = info.group === "" ? "/api" : `/apis/${info.group}`;
  return withTarget(call, `${root}/${info.version}/namespaces/${encodeURIComponent(namespace)}/${info.resource}?${query}`);
}

/** The call with another request line. */
export function withTarget(call: Call, target: string): Call {
  return { ...call, target, info: parseRequestInfo(call.method, target, call.upgrade) };
}

/** The path without the subresource, which other permissions guard and which may do something. */
export function objectPath({ path, segments, subresource }: ResourceInfo): string {
  const behind = subresource === "" ? 0 : subresource.split("/").length;
  return path
    .split("/")
    .slice(0, segments.length - behind + 1)
    .join("/");
}
