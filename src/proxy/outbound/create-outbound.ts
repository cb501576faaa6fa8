// The connections to the API server, the layers, and the server for the operator, none of them started.
import type { ListenAddress } from "../../base/listener.ts";
import type { Registry } from "../../base/metrics.ts";
import { parseRequestInfo } from "../../kube/request-info.ts";
import { mayUpgrade } from "../../kube/request-kind.ts";
import { type ApiServer, type ApiServerOptions, createApiServer } from "../api-server/api-server.ts";
import { createTrustStore } from "../api-server/connector.ts";
import { createRecord, type RawHandler } from "../call/call.ts";
import { createStreamMetrics } from "../filter/stream-metrics.ts";
import { composeStack } from "../http/compose-stack.ts";
import type { ServingCertificate } from "../identity/serving-certificate.ts";
import { createProxyMetrics, type ProxyMetrics } from "../observe/metrics.ts";
import { createTrafficServer, singleCertificate, type TrafficServer } from "../server/traffic-server.ts";
import { clusterPathOf } from "./cluster-path.ts";
import { createLockGate, type LockGate } from "./election/lock-gate.ts";
import { createPlanLog, type PlanLog } from "./lists/plan-log.ts";
import { outboundLayers, type StackDeps } from "./stack.ts";

export interface Outbound {
  readonly server: TrafficServer;
  /** Must not stop before the server. */
  readonly apiServer: ApiServer;
  /** Must not stop before the server. */
  readonly clusters: ServedClusters | undefined;
  readonly metrics: ProxyMetrics;
  readonly plans: PlanLog;
  readonly gate: LockGate;
}

export interface OutboundDeps extends Omit<StackDeps, "apiServer" | "metrics" | "streamMetrics" | "plans" | "gate" | "podName"> {
  readonly certificate: ServingCertificate;
  readonly registry: Registry;
  /** The stack's layers, outermost first. Default `outboundLayers`. */
  readonly layers?: typeof outboundLayers | undefined;
  readonly upstream?: Pick<ApiServerOptions, "timeouts" | "liveness"> | undefined;
  readonly traffic?: { readonly stalledMs?: number } | undefined;
  /** Makes what serves other clusters. Absent: none is served. */
  readonly createClusters?: ((parts: StackParts) => ServedClusters) | undefined;
}

/** What the stacks of all API servers share. */
export type StackParts = Omit<StackDeps, "session" | "apiServer" | "home" | "isAbroad">;

interface ServedClusters {
  /** Serves requests to other clusters, and leaves all others to the handler. */
  around(atHome: RawHandler): RawHandler;
  stop(): void;
}

export interface OutboundSettings {
  readonly listen: ListenAddress;
  readonly alsoListen: readonly ListenAddress[];
  readonly drainMs: number;
  readonly apiServer: ApiServerOptions["apiServer"];
  /** PEM file with the CA that signed its certificate. */
  readonly apiServerCa: string;
  readonly podName: string;
}

export function createOutbound(config: OutboundSettings, deps: OutboundDeps): Outbound {
  const { certificate, registry, clock, log, layers = outboundLayers } = deps;
  const apiServer = createApiServer({
    apiServer: config.apiServer,
    trust: createTrustStore(config.apiServerCa, log),
    clock,
    log,
    registry,
    ...deps.upstream,
  });
  const metrics = createProxyMetrics(registry);
  const streamMetrics = createStreamMetrics(registry);
  const plans = createPlanLog(clock);
  const gate = createLockGate(clock, deps.session.memory.lock);
  const parts = { ...deps, podName: config.podName, metrics, streamMetrics, plans, gate };
  const clusters = deps.createClusters?.(parts);
  const atHome = composeStack(layers({ ...parts, apiServer }), clock) as RawHandler;
  const server = createTrafficServer({
    listen: config.listen,
    alsoListen: config.alsoListen,
    tls: singleCertificate(certificate),
    // The layers before `request-info` read nothing of a call that a raw call lacks (stack.test.ts).
    stack: clusters?.around(atHome) ?? atHome,
    createRecord: () => createRecord(),
    mayUpgrade: mayBecomeTunnel,
    clock,
    log,
    drainMs: config.drainMs,
    ...deps.traffic,
  });
  return { server, apiServer, clusters, metrics, plans, gate };
}

function mayBecomeTunnel(method: string, target: string): boolean {
  try {
    return mayUpgrade(parseRequestInfo(method, clusterPathOf(target)?.target ?? target));
  } catch {
    return false; // the stack answers 400
  }
}
