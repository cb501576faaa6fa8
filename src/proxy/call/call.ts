// A call of the outbound stack: a request from the operator to the Kubernetes API, with what the layers learn about it. Layers
// pass on changed copies; only `record` is shared and written. Used by the layers and by what they call.
import type { RequestInfo } from "../../kube/request-info.ts";
import type { PlanName } from "../../route/plan-query.ts";
import type * as http from "../http/handler.ts";

/** What the layers note about a call while it passes, for each other, for metrics and for the access log. */
export interface CallRecord extends http.CallNotes {
  info?: RequestInfo;
  decision: "forwarded" | "narrowed" | "refused" | "fenced";
  /** The reason for the decision, where it is not the ordinary way. */
  reason?: DecisionReason;
  /** The entry of subsetDefaultOnlyUserAgents that excludes the caller from this subset. */
  excludedBy?: string;
  /** The client (kopf) handles listed objects differently from watch events, so a gained object must reach it through a list. */
  tellsListsApart?: true;
  plan?: PlanName;
  /** The call is for the operator's lock. No layer limits, delays or narrows it. */
  lock: boolean;
  /** The call was sent to the API server, so the answer is not the proxy's own. */
  asked?: true;
  /** Milliseconds spent waiting for the API server's headers or for the manager. They are not the proxy's overhead. */
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

/** The record of a new call. */
export function createRecord(info?: RequestInfo): CallRecord {
  return info === undefined ? { decision: "forwarded", lock: false } : { info, decision: "forwarded", lock: false };
}

/** Adds to the time that the call has waited for others. */
export function addWait(record: CallRecord, ms: number): void {
  record.waitedMs = (record.waitedMs ?? 0) + ms;
}
