// The connections to the API server, in pools that never wait for each other: no list delays the renewal of a
// lease, and none a get. Watches share HTTP/2 connections (docs/decisions/0009); all others use HTTP/1.1,
// where a connection carries one request at a time and a queue keeps the connections few.
import type { Dispatcher } from "undici";
import Pool from "undici/lib/dispatcher/pool.js";
import type { Clock } from "../../base/clock.ts";
import { isCollection, isLongRunning } from "../../kube/request-kind.ts";
import type { CallRecord } from "../call/call.ts";
import type { Reply } from "../http/handler.ts";
import type { Connections } from "./connections.ts";
import { createConnector, type TrustStore } from "./connector.ts";
import { type ExchangeOptions, exchange } from "./exchange.ts";
import type { Liveness } from "./liveness.ts";
import { createRequestQueue, type QueueOptions } from "./request-queue.ts";
import { connectFailureOf, type LostBy, type PoolName, type UpstreamMetrics } from "./upstream-metrics.ts";
import { createWatchConnections, type WatchConnections } from "./watch-connections.ts";

/**
 * Single objects. A get takes a millisecond or two, so that one that waits for ten has slow neighbours: a
 * webhook may delay a write for ten seconds, and a get must not wait for it. Most operators have fewer than
 * sixteen workers and never wait here.
 */
const SHORT: QueueOptions = { limit: 16, patienceMs: 10, max: 256 };
/** Lists and deletions of collections take seconds: more of them at a time rarely end sooner. */
const LIST: QueueOptions = { limit: 3, patienceMs: 1_000, max: 16 };
/** Below the API server's idle timeout of 90 s, so that no request meets a closing connection. */
const IDLE_MS = 60_000;
/** Response heads of aggregated APIs may carry large warnings. */
const MAX_HEAD_BYTES = 64 * 1024;
/** Busy connections are replaced too, so that they find API servers that were added. */
const MAX_REQUESTS = 10_000;

/** Times in milliseconds; 0 turns a bound off. */
export interface Timeouts {
  /** Until the response's head: seconds for 100,000 objects. The API server gives up after 60 s. */
  readonly headersMs: number;
  /** Between two chunks of a body, except of watches and other long-running requests. */
  readonly bodyMs: number;
  /** How long a write that was sent stays in flight without its client; default 60,000. */
  readonly abandonedMs?: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = { headersMs: 120_000, bodyMs: 120_000 };

/** The connections for HTTP/1.1 requests of one kind. */
export interface RequestPool {
  readonly name: PoolName;
  readonly waiting: number;
  /** Waits for a connection, then sends. @throws as `exchange`, or what `refuseWaiting` says */
  send(request: Dispatcher.DispatchOptions, options: Omit<ExchangeOptions, "onOver">): Promise<Reply>;
  /** Fails all requests that wait for a connection. */
  refuseWaiting(error: Error): void;
}

export interface Pools {
  for(record: CallRecord): RequestPool;
  /** For watches. If the API server speaks no HTTP/2, they use the pool of `for`. */
  readonly watches: WatchConnections;
  waitingIn(pool: PoolName): number;
  /** Ends every connection. */
  destroy(): Promise<void>;
}

export interface PoolsOptions {
  readonly origin: URL;
  readonly trust: TrustStore;
  readonly clock: Clock;
  readonly liveness: Liveness;
  readonly connections: Connections;
  readonly metrics: UpstreamMetrics;
  readonly onLost: (pool: PoolName, by: LostBy) => void;
}

/** Makes the pools; nothing is connected before the first request. */
export function createPools(options: PoolsOptions): Pools {
  const { origin, trust, clock, liveness, connections, metrics, onLost } = options;
  const connectFor = (pool: PoolName) =>
    createConnector({
      trust,
      liveness,
      http2: pool === "watch",
      onConnected(socket) {
        metrics.connected(pool);
        connections.add(pool, socket);
      },
      onFailed: (error) => metrics.connectFailed(pool, connectFailureOf(error)),
    });
  const dispatchers: Dispatcher[] = [];
  const createPool = (name: PoolName, queueOptions?: QueueOptions): RequestPool => {
    const queue = queueOptions && createRequestQueue(queueOptions, clock);
    const dispatcher = new Pool(origin.origin, {
      connect: connectFor(name),
      connections: null, // the queue is the bound; undici takes the first free connection, so that the others become idle and close
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      maxHeaderSize: MAX_HEAD_BYTES,
      maxRequestsPerClient: MAX_REQUESTS,
    });
    dispatchers.push(dispatcher);
    return {
      name,
      get waiting() {
        return queue?.waiting ?? 0;
      },
      async send(request, options) {
        const turn = queue?.enter(options.signal);
        if (turn !== undefined) await turn;
        return exchange(dispatcher, request, { ...options, onOver: queue?.leave });
      },
      refuseWaiting: (error) => queue?.refuseWaiting(error),
    };
  };
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
  return {
    watches,
    for(record) {
      const { info } = record;
      if (info !== undefined && isLongRunning(info)) return pools.stream;
      if (record.lock) return pools.lock;
      return info !== undefined && isCollection(info) ? pools.list : pools.short;
    },
    waitingIn: (pool) => (pool === "watch" ? 0 : pools[pool].waiting),
    async destroy() {
      watches.destroy();
      await Promise.all(dispatchers.map((dispatcher) => dispatcher.destroy()));
    },
  };
}
