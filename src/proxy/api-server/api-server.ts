// One API server as the proxy uses it: trust, pools, the one way to send a call, and what the proxy learns
// about the server. Invariants: no state about an API server lives outside of this object, so a second
// cluster is a second object; the destination is the configured server, whatever the request's Host header or
// target, and the credentials are the caller's own or none.
import type { Dispatcher } from "undici";
import type { Clock } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import type { Logger } from "../../base/log.ts";
import type { Registry } from "../../base/metrics.ts";
import { isLongRunning, isWatch } from "../../kube/request-kind.ts";
import { addWait, type Call, type Handler } from "../call/call.ts";
import { readableOf } from "../http/byte-stream.ts";
import type { Reply, Tunnel } from "../http/handler.ts";
import { createConnections } from "./connections.ts";
import { createTrustStore } from "./connector.ts";
import { createDiscovery, createServerFeatures, type Discovery, type ServerFeatures } from "./discovery.ts";
import { forwardedHeaders } from "./headers.ts";
import { DEFAULT_LIVENESS, type Liveness } from "./liveness.ts";
import { createPools, DEFAULT_TIMEOUTS, type RequestPool, type Timeouts } from "./pools.ts";
import { createTunnel } from "./tunnel.ts";
import { createUpstreamMetrics, type LostBy, type PoolName } from "./upstream-metrics.ts";
import { watchExchange } from "./watch-exchange.ts";

export interface ApiServerOptions {
  /** https://host:port of the API server. */
  readonly apiServer: string;
  /** PEM file with the CA that signed its certificate. */
  readonly caFile: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  readonly timeouts?: Timeouts;
  readonly liveness?: Liveness;
  /** Let watches share connections where the API server speaks HTTP/2; default true. */
  readonly http2?: boolean;
}

export interface ApiServer extends Runnable {
  /**
   * Sends a call and resolves with the response's head. A write that was sent is in flight until that head, a
   * failure, or a minute after its client has gone.
   * @throws MeshError `UPSTREAM_UNREACHABLE` if nothing was sent, `UPSTREAM_BROKEN` if the connection broke
   * under the request, `UPSTREAM_TIMEOUT`, `BAD_REQUEST`, `ABORTED`
   */
  readonly send: Handler;
  readonly tunnel: Tunnel;
  readonly discovery: Discovery;
  /** The kinds of filters that the servers behind this address have shown not to know. */
  readonly features: ServerFeatures;
}

/** The API server gives up a request after a minute. */
const ABANDONED_MS = 60_000;

/** Nothing is connected before the first call; `start` fails if the CA cannot be read. */
export function createApiServer(options: ApiServerOptions): ApiServer {
  const {
    apiServer,
    caFile,
    clock,
    log,
    registry,
    timeouts = DEFAULT_TIMEOUTS,
    liveness = DEFAULT_LIVENESS,
    http2 = true,
  } = options;
  const { abandonedMs = ABANDONED_MS } = timeouts;
  const origin = new URL(apiServer);
  const trust = createTrustStore(caFile, log);
  const onLost = (pool: PoolName, by: LostBy) => {
    metrics.lost(pool, by);
    log.warn({ apiServer: origin.origin, pool, by }, "a connection to the API server was lost: nothing comes back any more");
  };
  const connections = createConnections({ clock, liveness, onLost });
  const metrics = createUpstreamMetrics(registry, {
    openIn: connections.openIn,
    waitingIn: (pool) => pools.waitingIn(pool),
  });
  const pools = createPools({ origin, trust, clock, liveness, connections, metrics, onLost });
  let reachable = true;

  const sendWatch = async (call: Call): Promise<Reply | undefined> => {
    const { signal } = call;
    const stream = await pools.watches.open(watchHeaders(call, origin), signal);
    return stream === undefined ? undefined : watchExchange(stream, { signal, clock, headersMs: timeouts.headersMs });
  };
  const sendOnce = async (call: Call, pool: RequestPool): Promise<Reply> => {
    const { signal } = call;
    if (http2 && pool.name === "stream" && isPlainWatch(call)) {
      const reply = await sendWatch(call);
      if (reply !== undefined) return reply;
    }
    return pool.send(dispatchOptions(call, timeouts), { signal, clock, abandonedMs });
  };

  const noteReachable = (now: boolean, error?: MeshError) => {
    if (now === reachable) return;
    reachable = now;
    if (now) log.info({ apiServer: origin.origin }, "the API server is reachable again");
    else log.warn({ err: error, apiServer: origin.origin }, "the API server is not reachable");
  };

  const send = async (call: Call): Promise<Reply> => {
    const pool = pools.for(call.record);
    const started = clock.monotonicMs();
    try {
      for (let attempt = 0; ; attempt++) {
        try {
          const reply = await sendOnce(call, pool);
          noteReachable(true);
          return reply;
        } catch (error) {
          if (!(error instanceof MeshError)) throw error;
          // The server has just closed an idle connection. Reading twice does no harm.
          if (error.code === "UPSTREAM_BROKEN" && attempt === 0 && isRead(call)) {
            metrics.retried(isWatch(call.info) ? "watch" : pool.name);
            continue;
          }
          if (error.code === "UPSTREAM_UNREACHABLE") {
            noteReachable(false, error);
            // The waiting requests would fail one after the other.
            if (connections.openIn(pool.name) === 0) pool.refuseWaiting(error);
          }
          throw error;
        }
      }
    } finally {
      addWait(call.record, clock.monotonicMs() - started);
    }
  };
  return {
    name: "upstream",
    send,
    tunnel: createTunnel({ origin, trust, log, onConnected: (socket) => connections.add("stream", socket) }),
    discovery: createDiscovery(send, clock),
    features: createServerFeatures(clock),
    async start() {
      await trust.current();
    },
    async stop() {
      connections.stop();
      await pools.destroy();
    },
  };
}

function dispatchOptions(call: Call, timeouts: Timeouts): Dispatcher.DispatchOptions {
  const { method, target, body } = call;
  const streamed = body !== null && !(body instanceof Uint8Array);
  return {
    method,
    path: target,
    headers: forwardedHeaders(call.headers, streamed),
    body: streamed ? readableOf(body) : body,
    headersTimeout: timeouts.headersMs,
    bodyTimeout: isLongRunning(call.info) ? 0 : timeouts.bodyMs,
    // undici would close the connection after each DELETE with a body; the API server reads such bodies.
    ...(method === "HEAD" ? {} : { reset: false }),
  };
}

/** True if the call may be sent again after an unknown outcome. */
function isRead(call: Call): boolean {
  return (call.method === "GET" || call.method === "HEAD") && call.body === null && !call.signal.aborted;
}

// A watch without a body can use a shared connection.
function isPlainWatch({ method, body, info }: Call): boolean {
  return method === "GET" && body === null && isWatch(info);
}

function watchHeaders(call: Call, origin: URL): readonly string[] {
  const pseudo = [":method", call.method, ":scheme", "https", ":authority", origin.host, ":path", call.target];
  return [...pseudo, ...forwardedHeaders(call.headers, false)];
}
