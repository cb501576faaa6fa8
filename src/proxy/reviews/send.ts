// Sends a call to a webhook server: the operator's, or that of a peer. Invariants: headers of one connection
// stop here, and the mesh's own headers never reach the operator; a client that is gone, or whose time is up,
// ends the request. Called by the clients of both.
import type { IncomingHttpHeaders } from "node:http";
import { type buildConnector, type Dispatcher, Pool } from "undici";
import type { Clock } from "../../base/clock.ts";
import { exchange } from "../api-server/exchange.ts";
import { forwardedHeaders } from "../api-server/headers.ts";
import { type ByteSource, readableOf } from "../http/byte-stream.ts";
import type { CallSignal } from "../http/call-signal.ts";
import type { Reply } from "../http/handler.ts";

export interface Sent {
  readonly method: string;
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Uint8Array | ByteSource | null;
  readonly signal: CallSignal;
}

/** Longer than any caller waits: its signal ends the request. */
const MAX_MS = 120_000;

/**
 * Connections to one server, with at most one request at once on each.
 * @param idleMs less than the server's own idle timeout, since a review on a connection that just closes has
 * no answer
 */
export function createServerPool(origin: string, connect: buildConnector.connector, idleMs: number): Pool {
  return new Pool(origin, { connect, connections: null, pipelining: 1, allowH2: false, keepAliveTimeout: idleMs });
}

/** @throws MeshError as `exchange`; its texts name the API server */
export function send(pool: Dispatcher, sent: Sent, clock: Clock, mark: readonly string[] = []): Promise<Reply> {
  const { method, target, headers, body, signal } = sent;
  const isStream = body !== null && !(body instanceof Uint8Array);
  const { host, ...others } = headers;
  const named = forwardedHeaders(withoutMesh(others), isStream);
  const options: Dispatcher.DispatchOptions = {
    method,
    path: target,
    headers: [...(host === undefined ? [] : ["host", host]), ...named, ...mark],
    body: isStream ? readableOf(body) : body,
    headersTimeout: MAX_MS,
    bodyTimeout: MAX_MS,
    reset: false,
  };
  return exchange(pool, options, { signal, clock, abandonedMs: 0 });
}

function withoutMesh(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith("x-ctrlmesh-")));
}
