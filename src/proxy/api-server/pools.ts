// The connections to the API server, in pools that never wait for each other: a list of 100,000 objects or fifty watches
// must not delay the renewal of a lease, nor a list a get. Watches share HTTP/2 connections (docs/decisions/0009); the rest
// is HTTP/1.1, where one connection carries one request at a time, and a gate keeps the connections few.
import type { Dispatcher } from "undici";
import Pool from "undici/lib/dispatcher/pool.js";
import type { Clock } from "../../base/clock.ts";
import { isCollection, isLongRunning } from "../../kube/request-kind.ts";
import type { CallRecord } from "../call/call.ts";
import type { Connections } from "./connections.ts";
import { createConnector, type TrustStore } from "./connector.ts";
import { createGate, type Gate } from "./gate.ts";
import type { GrowthOptions } from "./growth.ts";
import type { Liveness } from "./liveness.ts";
import { connectFailureOf, type LostBy, type PoolName, type UpstreamMetrics } from "./upstream-metrics.ts";
import { createWatchConnections, type WatchConnections } from "./watch-connections.ts";

/**
 * Quick requests: a get takes a millisecond or two, so who waits ten has slow neighbours. The most is far off, since writes may
 * hang for ten seconds each behind an admission webhook, and a get must not wait for them.
 */
const SHORT: GrowthOptions = { base: 4, max: 256, patienceMs: 10, growOn: "wait" };
/** Lists and deletions of collections, which take up to many seconds: more at once only help who waits behind slow ones. */
const LIST: GrowthOptions = { base: 3, max: 16, patienceMs: 250, growOn: "standstill" };
/** Below the API server's own idle timeout of 90 s, so that we close first and no request meets a closing connection. */
const IDLE_MS = 60_000;
/** Response heads of aggregated APIs may carry large warnings. */
const MAX_HEAD_BYTES = 64 * 1024;
/** Then a connection is made anew, so that a busy one finds an API server that was added behind the same address. */
const MAX_REQUESTS = 10_000;

/** Times in milliseconds; 0 turns a bound off. */
export interface Timeouts {
  /** Until the response's head. A list of 100,000 objects needs seconds; the API server gives up after 60 s. */
  readonly headersMs: number;
  /** Between two chunks of a body, except of watches and other long-running requests. */
  readonly bodyMs: number;
  /** How long a write that was sent is waited for once its client is gone; default 60,000. */
  readonly abandonedMs?: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = { headersMs: 120_000, bodyMs: 120_000 };

/** Where HTTP/1.1 requests of one kind go. */
export interface Pool1 {
  readonly name: PoolName;
  readonly dispatcher: Dispatcher;
  /** Undefined: as many at once as clients ask for. */
  readonly gate: Gate | undefined;
}

export interface Pools {
  for(record: CallRecord): Pool1;
  /** For watches; where the API server speaks no HTTP/2, they go to the pool that `for` says. */
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
  const createPool = (name: PoolName, gate?: GrowthOptions): Pool1 => ({
    name,
    gate: gate === undefined ? undefined : createGate(gate, clock),
    dispatcher: new Pool(origin.origin, {
      connect: connectFor(name),
      connections: null, // the gate is the bound; undici takes the first free connection, so the others idle out
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
  return {
    watches,
    for(record) {
      const { info } = record;
      if (info !== undefined && isLongRunning(info)) return pools.stream;
      if (record.lock) return pools.lock;
      return info !== undefined && isCollection(info) ? pools.list : pools.short;
    },
    waitingIn: (pool) => (pool === "short" || pool === "list" ? (pools[pool].gate?.waiting ?? 0) : 0),
    async destroy() {
      watches.destroy();
      await Promise.all(Object.values(pools).map(({ dispatcher }) => dispatcher.destroy()));
    },
  };
}
