// A call of the outbound stack: a request from the operator to the Kubernetes API, with what the layers learn
// about it. Layers pass on changed copies; only `record` is shared and written. Invariants: `info` always
// belongs to `target`; a successful reply that has to be read and cannot be is refused, never passed.
import { isMeshError } from "../../base/errors.ts";
import { type Encoding, isCodecError } from "../../kube/codec/codec.ts";
import { encodingOf, narrowAccept } from "../../kube/codec/content-negotiation.ts";
import { parseRequestInfo, type RequestInfo, type ResourceInfo } from "../../kube/request-info.ts";
import { StatusError, type StatusReason } from "../../kube/status.ts";
import type { PlanName } from "../../mesh/ownership/plan-query.ts";
import type { Waited } from "../../policy/engine/faults.ts";
import type { Permit } from "../../policy/engine/permit.ts";
import type { PolicyRequest, Population } from "../../policy/policy-request.ts";
import { asSource, type ByteSource, discardBody, readBody } from "../http/byte-stream.ts";
import type * as http from "../http/handler.ts";

/** What the layers note about a call while it passes, for each other, for metrics and for the access log. */
export interface CallRecord extends http.CallNotes {
  info?: RequestInfo;
  decision: "forwarded" | "narrowed" | "warned" | "refused" | "fenced";
  /** The reason for a decision other than the ordinary one. */
  reason?: DecisionReason;
  /** With the decision `warned`: why the guard would have refused this write to another subset's object. */
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
  /** The other cluster to which the call goes. */
  cluster?: string;
  /** The rule of a policy that has refused the call: OBJECT/RULE. */
  rule?: string;
  /** The call as policies see it, with what that was read from. */
  policed?: { readonly info: RequestInfo; readonly isLock: boolean; readonly request: PolicyRequest };
  /** The objects of the call's resource; undefined while they are not counted. Only for calls that may delete. */
  population?: () => Population | undefined;
  /** Limits have let the call pass. They also let pass what the proxy sends to serve it. */
  isAdmitted?: true;
  /** What limits settle by the outcome of the call. */
  charge?: Permit;
  /** The head of the answer is known, or there is none. */
  isAnswered?: true;
  /** The client's call that this one serves. Absent for the client's own. */
  serves?: CallRecord;
  /** The client's call does not wait for this one, so its time is not that of the client's. */
  isAside?: true;
  /** Milliseconds of waiting for the API server or the manager, which is not the proxy's overhead. */
  waitedMs?: number;
  // The longest time that the API server took for the head of one of the answers to this call: without the
  // proxy's own queues, and also if the client left before the answer.
  slowestMs?: number;
  /** A FaultInjection has delayed the call. */
  delay?: Waited;
}

/** Why a call was refused, fenced or turned back. Bounded, because it is a label. */
export type DecisionReason =
  | "other-subset"
  | "moving"
  | "unknown"
  | "not-narrowable"
  | "frozen"
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

export interface Call extends RawCall {
  readonly info: RequestInfo;
}

export type RawHandler = http.Handler<RawCall, http.Reply>;
export type Handler = http.Handler<Call, http.Reply>;
export type Layer = http.Layer<Call, http.Reply>;
/** A layer that works before anybody has read the request line. */
export type RawLayer = <C extends RawCall>(next: http.Handler<C, http.Reply>) => http.Handler<C, http.Reply>;

/** The record of a new call. @param serves the call for which the proxy sends this one */
export function createRecord(
  info?: RequestInfo,
  serves?: CallRecord,
  decision: CallRecord["decision"] = "forwarded",
): CallRecord {
  const record: CallRecord = { decision, lock: false };
  if (info !== undefined) record.info = info;
  if (serves !== undefined) record.serves = clientsRecord(serves);
  if (serves?.isAside) record.isAside = true;
  return record;
}

export function clientsRecord(record: CallRecord): CallRecord {
  return record.serves ?? record;
}

export function addWait(record: CallRecord, ms: number): void {
  record.waitedMs = (record.waitedMs ?? 0) + ms;
}

/** Notes for how long the API server has worked on a request for the call. */
export function noteAnswerTime(record: CallRecord, ms: number): void {
  if (record.isAside) return;
  const own = clientsRecord(record);
  own.slowestMs = Math.max(own.slowestMs ?? 0, ms);
}

/** Notes why a call is not simply forwarded. */
export function noteDecision(record: CallRecord, decision: CallRecord["decision"], reason: DecisionReason): void {
  record.decision = decision;
  record.reason = reason;
}

export type ResourceCall = Call & { readonly info: ResourceInfo };

/** False for discovery, health and the like. */
export function isResourceCall(call: Call): call is ResourceCall {
  return call.info.kind === "resource";
}

/** The call with a query parameter set in place of all values that it had. */
export function withParameter<C extends Call>(call: C, name: string, value: string): C {
  const query = new URLSearchParams(call.info.query);
  query.set(name, value);
  return withQuery(call, query);
}

export function withQuery<C extends Call>(call: C, query: URLSearchParams): C {
  return withTarget(call, `${call.info.path}?${query}`);
}

export function inNamespace(call: ResourceCall, namespace: string, query: URLSearchParams): ResourceCall {
  const { group, version, resource } = call.info;
  const root = group === "" ? "/api" : `/apis/${group}`;
  return withTarget(call, `${root}/${version}/namespaces/${encodeURIComponent(namespace)}/${resource}?${query}`);
}

/** @param target must be of the same kind: a call for objects stays one */
export function withTarget<C extends Call>(call: C, target: string): C {
  return { ...call, target, info: parseRequestInfo(call.method, target, call.upgrade) };
}

/** A GET that the proxy sends as the caller, for its call. */
export function askAsCaller(call: Call, target: string, headers: Call["headers"], signal: Call["signal"]): Call {
  const info = parseRequestInfo("GET", target);
  return { method: "GET", target, info, headers, body: null, signal, record: createRecord(info, call.record) };
}

/** The headers by which the API server knows the caller, and the others that are named. */
export function identityHeaders(headers: Call["headers"], ...others: readonly string[]): Call["headers"] {
  const taken = new Set(["authorization", "user-agent", ...others]);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => taken.has(name) || name.startsWith("impersonate-")));
}

/** The bytes of a body. @throws StatusError with the reason if `what` has more */
export async function readBounded(body: Call["body"], maxBytes: number, reason: StatusReason, what: string): Promise<Uint8Array> {
  try {
    return await readBody(body, maxBytes);
  } catch (error) {
    if (!isMeshError(error, "BODY_TOO_LARGE")) throw error;
    throw new StatusError(reason, `ctrlmesh: ${what} is over ${maxBytes} bytes`);
  }
}

/** Reads a request's body. @throws StatusError BadRequest for an error of the codec */
export function orBadRequest<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!isCodecError(error)) throw error;
    throw new StatusError("BadRequest", `ctrlmesh: ${error.message}`, undefined, { cause: error });
  }
}

/** The path without its subresource: a GET of that needs other permissions and may act (exec, proxy). */
export function objectPath({ path, segments, subresource }: ResourceInfo): string {
  const behind = subresource === "" ? 0 : subresource.split("/").length;
  return path
    .split("/")
    .slice(0, segments.length - behind + 1)
    .join("/");
}

/** The call with a reply that the proxy can read: uncompressed, as JSON or protobuf. */
export function askUncompressed<C extends Call>(call: C): C {
  return { ...call, headers: { ...call.headers, accept: narrowAccept(call.headers.accept), "accept-encoding": "identity" } };
}

/** As `askUncompressed`, with the metadata that says who owns a row of a Table. */
export function askReadable<C extends Call>(call: C): C {
  const asked = askUncompressed(call);
  return call.info.query.get("includeObject") === "None" ? withParameter(asked, "includeObject", "Metadata") : asked;
}

/** As `askReadable`, for a list or a watch: without a body, which means nothing and cannot be sent twice. */
export function askReadableCollection<C extends Call>(call: C): C {
  discardBody(call.body);
  const { "content-length": _length, "transfer-encoding": _coding, "content-type": _type, ...headers } = call.headers;
  return askReadable({ ...call, headers, body: null });
}

/** The encoding of the reply's body; undefined if it cannot be read (another type, or compressed). */
export function readableEncoding({ headers }: http.Reply): Encoding | undefined {
  const coding = headers["content-encoding"];
  if (coding !== undefined && coding !== "identity") return undefined;
  const type = headers["content-type"];
  const encoding = encodingOf(typeof type === "string" ? type : "");
  return encoding === "json" || encoding === "protobuf" ? encoding : undefined;
}

/** The reply to a list or watch with its body filtered. @throws StatusError NotAcceptable */
export function filterReply(
  { method }: Call,
  reply: http.Reply,
  filter: (body: ByteSource, encoding: Encoding) => ByteSource,
): http.Reply {
  if (reply.status >= 300) return reply;
  const { "content-length": _, etag: _tag, ...headers } = reply.headers;
  if (method === "HEAD" && reply.body === null) return { ...reply, headers };
  const encoding = readableEncoding(reply);
  if (encoding === undefined || reply.status !== 200 || reply.body === null) {
    discardBody(reply.body);
    const what = `status ${reply.status}, content type ${String(reply.headers["content-type"] ?? "none")}`;
    throw new StatusError("NotAcceptable", `ctrlmesh: the API server's reply cannot be filtered (${what})`);
  }
  return { ...reply, headers, body: filter(asSource(reply.body), encoding) };
}
