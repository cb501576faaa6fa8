// The connections to the API server, in three pools that never wait for each other: a list of 100,000 objects or fifty
// watches must not delay the renewal of a lease. HTTP/1.1, where one connection carries one request at a time.
import type { Dispatcher } from "undici";
import Pool from "undici/lib/dispatcher/pool.js";
import type { RequestInfo } from "../../kube/request-info.ts";
import type { CallRecord } from "../pipeline/handler.ts";
import { createConnector, type TrustStore } from "./connector.ts";

/** Bounds short requests; long-running ones and locks are bounded by the client alone. */
const MAX_SHORT_CONNECTIONS = 256;
/** Below the API server's own idle timeout of 90 s, so that we close first and no request meets a closing connection. */
const IDLE_MS = 60_000;
/** Response heads of aggregated APIs may carry large warnings. */
const MAX_HEAD_BYTES = 64 * 1024;

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

export interface Pools {
  for(record: CallRecord): Dispatcher;
  /** Ends every connection. */
  destroy(): Promise<void>;
}

/** Makes the pools; nothing is connected before the first request. */
export function createPools(origin: string, trust: TrustStore): Pools {
  const connect = createConnector(trust);
  const pool = (connections: number | null) =>
    new Pool(origin, {
      connect,
      connections,
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      maxHeaderSize: MAX_HEAD_BYTES,
    });
  const short = pool(MAX_SHORT_CONNECTIONS);
  const long = pool(null);
  const locks = pool(null);
  return {
    for(record) {
      if (record.info !== undefined && isLongRunning(record.info)) return long;
      return record.lock ? locks : short;
    },
    async destroy() {
      await Promise.all([short.destroy(), long.destroy(), locks.destroy()]);
    },
  };
}

const LONG_SUBRESOURCES = new Set(["exec", "attach", "portforward", "proxy"]);

/** True for requests without an end of their own: watches, followed logs, proxies and streams. As in kube-apiserver. */
export function isLongRunning(info: RequestInfo): boolean {
  if (info.kind !== "resource") return false;
  if (info.verb === "watch") return true;
  const [subresource = ""] = info.subresource.split("/");
  return LONG_SUBRESOURCES.has(subresource) || (subresource === "log" && info.query.has("follow"));
}
