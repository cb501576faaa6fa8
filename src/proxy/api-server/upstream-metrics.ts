// The metrics of the connections to the API server.
import { Counter, Gauge, type Registry } from "../../base/metrics.ts";

const POOL_NAMES = ["watch", "stream", "lock", "list", "short"] as const;
export type PoolName = (typeof POOL_NAMES)[number];

/** Why no connection could be made. */
export type ConnectFailure = "refused" | "timeout" | "unreachable" | "dns" | "tls" | "reset" | "other";

/** The means by which a vanished peer was noticed. */
export type LostBy = "keepalive" | "ping" | "unacknowledged";

/** Read at each scrape. */
interface UpstreamGauges {
  /** The number of open connections. */
  readonly openIn: (pool: PoolName) => number;
  /** The number of requests that wait for a connection. */
  readonly waitingIn: (pool: PoolName) => number;
}

export function createUpstreamMetrics(registry: Registry, gauges: UpstreamGauges) {
  const registers = [registry];
  const gauge = (name: string, help: string, valueIn: (pool: PoolName) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ["pool"],
      registers,
      collect() {
        for (const pool of POOL_NAMES) this.set({ pool }, valueIn(pool));
      },
    });
  gauge("ctrlmesh_proxy_upstream_connections", "Open connections to the API server.", gauges.openIn);
  gauge("ctrlmesh_proxy_upstream_waiting_requests", "Requests that wait for a connection.", gauges.waitingIn);
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ name: `ctrlmesh_proxy_upstream_${name}_total`, help, labelNames, registers });
  const connects = counter("connects", "Connections that were made.", "pool");
  const failures = counter("connect_failures", "Connections that could not be made.", "pool", "reason");
  const lost = counter("lost_connections", "Connections whose peer had vanished, by what noticed it.", "pool", "by");
  const retries = counter("retries", "Requests that were sent a second time.", "pool");
  return {
    connected: (pool: PoolName) => connects.inc({ pool }),
    connectFailed: (pool: PoolName, reason: ConnectFailure) => failures.inc({ pool, reason }),
    lost: (pool: PoolName, by: LostBy) => lost.inc({ pool, by }),
    retried: (pool: PoolName) => retries.inc({ pool }),
  };
}

const FAILURES: Readonly<Record<string, ConnectFailure>> = {
  ECONNREFUSED: "refused",
  ETIMEDOUT: "timeout",
  UND_ERR_CONNECT_TIMEOUT: "timeout",
  EHOSTUNREACH: "unreachable",
  ENETUNREACH: "unreachable",
  ENOTFOUND: "dns",
  EAI_AGAIN: "dns",
  ECONNRESET: "reset",
  EPIPE: "reset",
  CA_UNREADABLE: "tls",
};

export function connectFailureOf(error: Error): ConnectFailure {
  const code = "code" in error ? String(error.code) : "";
  const failure = FAILURES[code];
  if (failure !== undefined) return failure;
  // OpenSSL's codes, and those of certificate checks: UNABLE_TO_..., CERT_..., SELF_SIGNED_...
  return /^ERR_(SSL|TLS)_|CERT|ISSUER|SIGNATURE/.test(code) ? "tls" : "other";
}
