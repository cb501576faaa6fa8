// Writes metrics and the access log at the head and at the end of each answer. Invariant: every call counts
// once, a failed one with the code of the reply that `rescue` creates, or 499 if the client has left.
import { onAbort } from "../../base/abort.ts";
import type { Clock } from "../../base/clock.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import { isLongRunning } from "../../kube/request-kind.ts";
import type { CallRecord, DecisionReason, RawCall, RawLayer } from "../call/call.ts";
import { countedSource } from "../http/body-sources.ts";
import type { Reply } from "../http/handler.ts";
import { type AccessLog, type AccessSink, delayFields } from "../observe/access-log.ts";
import type { ProxyMetrics, StreamKind } from "../observe/metrics.ts";
import { answerTo, isAborted } from "./rescue.ts";

/** The code for a client that went before there was an answer, as in nginx. */
const CLIENT_GONE = 499;

export interface ObserveOptions {
  readonly metrics: ProxyMetrics;
  readonly clock: Clock;
  readonly accessLog: AccessLog;
}

export function observe({ metrics, clock, accessLog }: ObserveOptions): RawLayer {
  const headReady = (record: CallRecord, code: number, startedMs: number) => {
    metrics.replied(record, code, (clock.monotonicMs() - startedMs) / 1000);
    if (record.timing !== undefined) metrics.timed(record.timing);
  };

  // The reply, whose end is observed once.
  const observed = (call: RawCall, reply: Reply, startedMs: number, write: AccessSink | undefined): Reply => {
    const kind = streamKind(call.record.info, reply);
    const end = (bytes: number) => {
      const seconds = (clock.monotonicMs() - startedMs) / 1000;
      if (kind === undefined) metrics.finished(call.record, seconds);
      else metrics.streamClosed(kind);
      write?.(accessFields(call, reply.status, bytes, seconds));
    };
    if (kind !== undefined) metrics.streamOpened(kind);
    // The server fires the signal of every upgraded call in the end.
    if (reply.tunnel !== undefined) onAbort(call.signal, () => end(0));
    else if (reply.body === null || reply.body instanceof Uint8Array) end(reply.body?.length ?? 0);
    else return { ...reply, body: countedSource(reply.body, end) };
    return reply;
  };

  return (next) => async (call) => {
    const write = accessLog.pick();
    const startedMs = clock.monotonicMs();
    let reply: Reply;
    try {
      reply = await next(call);
    } catch (error) {
      const code = isAborted(error) && call.signal.aborted ? CLIENT_GONE : answerTo(error, call.method).status.code;
      noteFailure(call.record, error, code);
      headReady(call.record, code, startedMs);
      write?.(accessFields(call, code, 0, (clock.monotonicMs() - startedMs) / 1000));
      throw error;
    }
    headReady(call.record, reply.status, startedMs);
    return observed(call, reply, startedMs, write);
  };
}

// Notes the reason of an error whose layer noted none.
function noteFailure(record: CallRecord, error: unknown, code: number): void {
  if (record.reason !== undefined) return;
  record.reason = reasonOf(error, code);
  const isOurs = record.reason === "bad-request" || record.reason === "not-filterable";
  if (isOurs && record.decision === "forwarded") record.decision = "refused";
}

function reasonOf(error: unknown, code: number): DecisionReason {
  const cause = error instanceof Error && "code" in error ? String(error.code) : "";
  if (code === CLIENT_GONE) return "client-gone";
  if (cause.startsWith("UPSTREAM_")) return "upstream";
  if (code === 406) return "not-filterable";
  return code < 500 ? "bad-request" : "internal";
}

// Undefined for an error, even of a watch.
function streamKind(info: RequestInfo | undefined, { status, tunnel }: Reply): StreamKind | undefined {
  if (tunnel !== undefined) return "tunnel";
  if (info?.kind !== "resource" || status >= 300 || !isLongRunning(info)) return undefined;
  if (info.verb === "watch") return "watch";
  return info.subresource === "log" ? "log" : "proxy";
}

function accessFields({ method, record }: RawCall, code: number, bytes: number, seconds: number): Record<string, unknown> {
  const { info, cluster, decision, reason, rule, plan, lock, delay } = record;
  const about = { method, code, cluster, bytes, seconds, decision, reason, rule, plan, lock, ...delayFields(delay) };
  if (info?.kind !== "resource") return { ...about, path: info?.path };
  const { verb, group, resource, subresource, namespace, name } = info;
  return { ...about, verb, group, resource, subresource, namespace, name };
}
