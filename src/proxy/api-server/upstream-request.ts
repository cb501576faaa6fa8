// What a call is for its API server: the pool it goes to, whether it may write or be sent again, and the request that undici sends. Pure.
import type { Dispatcher } from "undici";
import { isCollection, isLongRunning, isWatch, mayUpgrade } from "../../kube/request-kind.ts";
import type { Call, CallRecord } from "../call/call.ts";
import { checkedSource } from "../http/body-sources.ts";
import { readableOf } from "../http/byte-stream.ts";
import { type MayWrite, SAFE_METHODS } from "./exchange.ts";
import { forwardedHeaders } from "./headers.ts";
import type { PoolName } from "./upstream-metrics.ts";

/** Times in milliseconds; 0 turns a bound off. */
export interface Timeouts {
  /** The wait for a response's head: seconds for 100,000 objects. The API server gives up after 60 s. */
  readonly headersMs: number;
  /** The longest pause in a body. Watches and other long-running requests have no such bound. */
  readonly bodyMs: number;
  /** How long a write that was sent stays in flight without its client; default 60,000. */
  readonly abandonedMs?: number;
}

/** The pool of a call. A watch uses it only if the API server does not speak HTTP/2. */
export function poolOf({ info, lock }: CallRecord): Exclude<PoolName, "watch"> {
  if (info !== undefined && isLongRunning(info)) return "stream";
  if (lock) return "lock";
  return info !== undefined && isCollection(info) ? "list" : "short";
}

/** @param prefix the path of the server's URL. @param mayWrite undefined for a call that only reads */
export function dispatchOptions(
  call: Call,
  timeouts: Timeouts,
  prefix: string,
  mayWrite: MayWrite | undefined,
): Dispatcher.DispatchOptions {
  const { method, target, body } = call;
  const streamed = body !== null && !(body instanceof Uint8Array);
  return {
    method,
    path: prefix + target,
    headers: forwardedHeaders(call.headers, streamed),
    body: streamed ? readableOf(mayWrite === undefined ? body : checkedSource(body, mayWrite)) : body,
    headersTimeout: timeouts.headersMs,
    bodyTimeout: isLongRunning(call.info) ? 0 : timeouts.bodyMs,
    // undici would close the connection after each DELETE with a body; the API server reads such bodies.
    ...(method === "HEAD" ? {} : { reset: false }),
  };
}

/** True for whatever may change something or reach into a pod, by any verb. */
export function isWrite({ method, info }: Call): boolean {
  return !SAFE_METHODS.has(method) || mayUpgrade(info);
}

/** True if the call may be sent again after an unknown outcome. */
export function mayRepeat(call: Call): boolean {
  return (call.method === "GET" || call.method === "HEAD") && call.body === null && !call.signal.aborted;
}

/** True for a watch that can share an HTTP/2 connection. */
export function isPlainWatch({ method, body, info }: Call): boolean {
  return method === "GET" && body === null && isWatch(info);
}

/** For HTTP/2: the headers with the pseudo-headers first. */
export function watchHeaders(call: Call, origin: URL, prefix: string): readonly string[] {
  const pseudo = [":method", call.method, ":scheme", "https", ":authority", origin.host, ":path", prefix + call.target];
  return [...pseudo, ...forwardedHeaders(call.headers, false)];
}
