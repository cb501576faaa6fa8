// The shape of the pipeline: a layer is a function from the next handler to a handler. A reply's body is bytes, a push
// source, or nothing, so that a body of any size passes without being held and without a stream object for each layer.
import type { IncomingHttpHeaders } from "node:http";
import type { RequestInfo } from "../../kube/request-info.ts";
import type { PlanName } from "../../route/plan-query.ts";
import type { ByteSource } from "./byte-stream.ts";
import type { CallSignal } from "./call-signal.ts";
import type { LayerTiming } from "./layer-timing.ts";

/** What the layers note about a call while it passes, for metrics and the access log. */
export interface CallRecord {
  info?: RequestInfo;
  decision: "forwarded" | "narrowed" | "refused" | "fenced";
  /** Why, where it is not the ordinary way; set by whoever decides. */
  reason?: DecisionReason;
  /** The entry of subsetDefaultOnlyUserAgents that keeps the caller out of this subset: it owns nothing here. */
  keptOutBy?: string;
  /** The caller takes what a list brings otherwise than what a watch does: nothing may come to it by a watch that it would have listed. */
  tellsListsApart?: true;
  /** Only on the few calls whose time is measured layer by layer. */
  timing?: LayerTiming;
  plan?: PlanName;
  /** The call is for the operator's lock, which no layer limits, disturbs or narrows. */
  lock: boolean;
  /** The call was sent to the API server: what answers it is no invention of the proxy's. */
  asked?: true;
  /** Milliseconds spent waiting for others: for the upstream's headers, or for the manager's word. Not our overhead. */
  waitedMs?: number;
}

/** Why a call was refused, fenced or turned back. Bounded: it is a label. */
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

/** A request as it came in. Layers pass on changed copies; only `record` is shared and written. */
export interface RawCall {
  readonly method: string;
  /** Path and query, origin form. */
  readonly target: string;
  /** Header names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** The request's body: bytes once a layer has read it, else a source that may be taken once; null if there is none. */
  readonly body: Uint8Array | ByteSource | null;
  /** The protocol that the client wants to switch to (exec, attach, port-forward); absent for a plain request. */
  readonly upgrade?: string;
  /** Fires when the client is gone or the proxy drains. */
  readonly signal: CallSignal;
  readonly record: CallRecord;
}

/** A call whose request line has been read. `info` always belongs to `method` and `target`. */
export interface Call extends RawCall {
  readonly info: RequestInfo;
}

export type ReplyHeaders = Readonly<Record<string, string | readonly string[]>>;

export interface Reply {
  readonly status: number;
  /** Header names in lower case, without hop-by-hop headers. A layer that changes the body drops `content-length`. */
  readonly headers: ReplyHeaders;
  readonly body: Uint8Array | ByteSource | null;
  /** With status 101: every layer agreed to the upgrade, and the server connects the two sockets for this call. */
  readonly tunnel?: Call;
}

export type RawHandler = (call: RawCall) => Promise<Reply>;
export type Handler = (call: Call) => Promise<Reply>;
export type RawLayer = (next: RawHandler) => RawHandler;
export type Layer = (next: Handler) => Handler;
