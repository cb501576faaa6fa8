// One API server as the proxy uses it. Invariants: calls go to the configured server, whatever their Host
// header or target, with the caller's own credentials or none; pools of connections never wait for each
// other, so no list delays the renewal of a lease. Watches share HTTP/2 connections (docs/decisions/0009).
import Client from "undici/lib/dispatcher/client.js";
import Pool from "undici/lib/dispatcher/pool.js";
import { MeshError } from "../../base/errors.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { isWatch } from "../../kube/request-kind.ts";
import { addWait, type Call, type Handler, noteAnswerTime } from "../call/call.ts";
import type { ByteSource } from "../http/byte-stream.ts";
import type { Reply } from "../http/handler.ts";
import { createConnections, DEFAULT_LIVENESS, type Liveness } from "./connections.ts";
import { createConnector, type TrustStore } from "./connector.ts";
import { createDiscovery, createServerFeatures, type Discovery, type ServerFeatures } from "./discovery.ts";
import { exchange, type MayWrite } from "./exchange.ts";
import { createRequestQueue, type QueueOptions } from "./request-queue.ts";
import { createTunnel } from "./tunnel.ts";
import { connectFailureOf, createUpstreamMetrics, type LostBy, type PoolName } from "./upstream-metrics.ts";
import { dispatchOptions, isPlainWatch, isWrite, mayRepeat, poolOf, type Timeouts, watchHeaders } from "./upstream-request.ts";
import { createWatchConnections } from "./watch-connections.ts";
import { watchExchange } from "./watch-exchange.ts";

export interface ApiServerOptions extends Pick<ProcessContext, "clock" | "log" | "registry"> {
  /** https://host:port of the API server; a path is put before the path of each call. */
  readonly apiServer: string;
  /** The CA that signed its certificate. */
  readonly trust: TrustStore;
  /**
   * Asked just before each byte of a write goes out. If it has an error, the write fails with it. With this bound, connections with
   * a running request end with a reset, so that no byte arrives later. Default: writes always pass.
   */
  readonly mayWrite?: MayWrite;
  /** Each answer that is not whole yet passes through it. */
  readonly readAnswer?: (body: ByteSource) => ByteSource;
  readonly timeouts?: Timeouts;
  readonly liveness?: Liveness;
}

export interface ApiServer extends Runnable {
  /**
   * Sends a call and resolves with the response's head. A write that was sent is in flight until that head, a
   * failure, or a minute after its client has gone.
   * @throws MeshError `UPSTREAM_UNREACHABLE` if nothing was sent, `UPSTREAM_BROKEN` if the connection broke
   * under the request, `UPSTREAM_TIMEOUT`, `BAD_REQUEST`, `ABORTED`
   */
  readonly send: Handler;
  /** Answers an upgrade with the intent to connect the two sockets. @throws MeshError that of `mayWrite` */
  readonly upgrade: (call: Call) => Reply;
  readonly discovery: Discovery;
  readonly features: ServerFeatures;
}

export const DEFAULT_TIMEOUTS: Timeouts = { headersMs: 120_000, bodyMs: 120_000 };
/** The API server gives up a request after a minute. */
const ABANDONED_MS = 60_000;
/** For single objects. A get takes 1 or 2 ms, and must not wait for a write that a webhook delays by 10 s. */
const SHORT: QueueOptions = { limit: 16, patienceMs: 10, max: 256 };
/** Lists and deletions of collections take seconds. More of them at a time rarely end sooner. */
const LIST: QueueOptions = { limit: 3, patienceMs: 1_000, max: 16 };
/** Below the API server's idle timeout of 90 s, so that no request meets a closing connection. */
const IDLE_MS = 60_000;
/** Response heads of aggregated APIs may carry large warnings. */
const MAX_HEAD_BYTES = 64 * 1024;
/** A busy connection is replaced after so many requests, so that API servers that were added get traffic. */
const MAX_REQUESTS = 10_000;

/** Nothing is connected before the first call; `start` fails if the CA cannot be read. */
export function createApiServer(options: ApiServerOptions): ApiServer {
  const { clock, log, timeouts = DEFAULT_TIMEOUTS, liveness = DEFAULT_LIVENESS } = options;
  const { abandonedMs = ABANDONED_MS } = timeouts;
  const { trust, mayWrite, readAnswer } = options;
  const origin = new URL(options.apiServer);
  const prefix = origin.pathname.replace(/\/+$/, "");
  const onLost = (pool: PoolName, by: LostBy) => {
    metrics.lost(pool, by);
    log.warn({ apiServer: origin.origin, pool, by }, "a connection to the API server was lost: nothing comes back any more");
  };
  const connections = createConnections({ clock, liveness, onLost });
  const metrics = createUpstreamMetrics(options.registry, {
    openIn: connections.openIn,
    waitingIn: (pool) => (pool === "watch" ? 0 : (pools[pool].queue?.waiting ?? 0)),
  });
  const connectFor = (pool: PoolName, endsByReset?: () => boolean) =>
    createConnector({
      trust,
      liveness,
      http2: pool === "watch",
      endsByReset,
      onConnected(socket) {
        metrics.connected(pool);
        connections.add(pool, socket);
      },
      onFailed: (error) => metrics.connectFailed(pool, connectFailureOf(error)),
    });
  /** A client has one connection. */
  const resettingClient = (pool: PoolName) => (to: URL, options: Client.Options) => {
    const isBusy = () => client.stats.running > 0;
    const client: Client = new Client(to, { ...options, connect: connectFor(pool, isBusy) });
    return client;
  };
  const createPool = (name: PoolName, queueOptions?: QueueOptions) => ({
    queue: queueOptions && createRequestQueue(queueOptions, clock),
    dispatcher: new Pool(origin.origin, {
      connect: connectFor(name),
      ...(mayWrite && { factory: resettingClient(name) }),
      connections: null, // the queue is the bound; undici takes the first free connection, so that the others become idle and close
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      maxHeaderSize: MAX_HEAD_BYTES,
      maxRequestsPerClient: MAX_REQUESTS,
    }),
  });
  const pools = {
    short: createPool("short", SHORT),
    list: createPool("list", LIST),
    lock: createPool("lock"),
    stream: createPool("stream"),
  };
  const watches = createWatchConnections({
    origin,
    connect: connectFor("watch"),
    clock,
    pingEveryMs: liveness.pingEveryMs,
    onLost: () => onLost("watch", "ping"),
  });
  let reachable = true;

  const sendOnce = async (call: Call, pool: keyof typeof pools): Promise<Reply> => {
    const { signal } = call;
    let startedMs = clock.monotonicMs();
    try {
      if (isPlainWatch(call)) {
        const stream = await watches.open(watchHeaders(call, origin, prefix), signal);
        if (stream !== undefined) return await watchExchange(stream, { signal, clock, headersMs: timeouts.headersMs });
      }
      const { queue, dispatcher } = pools[pool];
      const turn = queue?.enter(signal);
      if (turn !== undefined) {
        startedMs = Number.POSITIVE_INFINITY; // a call that leaves the queue has not been sent
        await turn;
        startedMs = clock.monotonicMs();
      }
      const guard = isWrite(call) ? mayWrite : undefined;
      const request = dispatchOptions(call, timeouts, prefix, guard);
      return await exchange(dispatcher, request, { signal, clock, abandonedMs, onOver: queue?.leave, mayWrite: guard });
    } finally {
      noteAnswerTime(call.record, clock.monotonicMs() - startedMs);
    }
  };

  const noteReachable = (now: boolean, error?: MeshError) => {
    if (now === reachable) return;
    reachable = now;
    if (now) log.info({ apiServer: origin.origin }, "the API server is reachable again");
    else log.warn({ err: error, apiServer: origin.origin }, "the API server is not reachable");
  };

  const send = async (call: Call): Promise<Reply> => {
    const pool = poolOf(call.record);
    const started = clock.monotonicMs();
    try {
      for (let attempt = 0; ; attempt++) {
        try {
          const reply = await sendOnce(call, pool);
          noteReachable(true);
          const { body } = reply;
          return readAnswer === undefined || body === null || body instanceof Uint8Array
            ? reply
            : { ...reply, body: readAnswer(body) };
        } catch (error) {
          if (!(error instanceof MeshError)) throw error;
          // Most likely the server has just closed an idle connection. Reading twice does no harm.
          if (error.code === "UPSTREAM_BROKEN" && attempt === 0 && mayRepeat(call)) {
            metrics.retried(isWatch(call.info) ? "watch" : pool);
            continue;
          }
          if (error.code === "UPSTREAM_UNREACHABLE") {
            noteReachable(false, error);
            // The waiting requests would fail one after the other.
            if (connections.openIn(pool) === 0) pools[pool].queue?.refuseWaiting(error);
          }
          throw error;
        }
      }
    } finally {
      addWait(call.record, clock.monotonicMs() - started);
    }
  };
  const connectStream = (isCut: () => boolean) => connectFor("stream", mayWrite && isCut);
  const connect = createTunnel({ origin, prefix, connect: connectStream, mayWrite, clock, log });
  return {
    name: "upstream",
    send,
    upgrade(call) {
      const refusal = mayWrite?.();
      if (refusal !== undefined) throw refusal;
      return { status: 101, headers: {}, body: null, tunnel: call, connect };
    },
    discovery: createDiscovery(send, clock),
    features: createServerFeatures(clock),
    async start() {
      await trust.current();
    },
    async stop() {
      connections.stop();
      watches.destroy();
      await Promise.all(Object.values(pools).map(({ dispatcher }) => dispatcher.destroy()));
    },
  };
}
