// Puts the proxy's parts together around a session and its layers, in the order in which they start. Invariant: health
// answers before anything else starts, and traffic is the last to start and the first to stop, so that the session still
// follows the manager while requests drain. Called by app.ts, and by tests with a session of their own.
import { type Clock, type Random, systemRandom } from "../base/clock.ts";
import { createHealthServer } from "../base/health-server.ts";
import type { Runnable } from "../base/lifecycle.ts";
import type { Logger } from "../base/log.ts";
import type { Registry } from "../base/metrics.ts";
import { formatAddress } from "../base/settings.ts";
import { createAccessLog } from "./access-log.ts";
import { createDiscovery, type Discovery } from "./api-server/discovery.ts";
import { createUpstream, type UpstreamOptions } from "./api-server/upstream.ts";
import type { ProxyConfig } from "./config.ts";
import { debugPages, type PlanSource } from "./debug/debug-pages.ts";
import type { ServingCertificate } from "./identity/serving-certificate.ts";
import { createPipeline, type PipelineDeps } from "./layers/stack.ts";
import { createProxyMetrics } from "./metrics.ts";
import { createTrafficServer, type TrafficServerOptions } from "./server/traffic-server.ts";
import { createTunnel } from "./server/tunnel.ts";
import type { ManagerContact, Session } from "./session/session.ts";

export interface ProxyDeps {
  readonly session: Session & Partial<ManagerContact> & Runnable;
  readonly certificate: ServingCertificate;
  /** The layers that decide; made with what they need of the rest. */
  readonly layers: (parts: { readonly discovery: Discovery }) => Pick<PipelineDeps, "election" | "isolate" | "lockGate">;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly random?: Random;
  readonly log: Logger;
  /** What /debug/plans shows; default nothing. */
  readonly plans?: PlanSource;
  readonly upstream?: Pick<UpstreamOptions, "timeouts" | "liveness" | "http2">;
  readonly traffic?: Pick<TrafficServerOptions, "stalledMs">;
}

/** What is printed once the proxy is ready. */
export interface ReadyInfo {
  readonly url: string;
  readonly healthUrl: string;
  /** File with the CA that the operator has to trust; the serving certificate's own file if that was given. */
  readonly ca: string;
}

export interface Proxy {
  /** In the order of their start, for `runGroups`. */
  readonly groups: readonly (readonly Runnable[])[];
  /** Where to find the started proxy. */
  ready(): ReadyInfo;
}

const NO_PLANS: PlanSource = { list: () => [] };

/** Makes the parts; nothing is bound or connected before they start. */
export function createProxy(config: ProxyConfig, deps: ProxyDeps): Proxy {
  const { session, certificate, registry, clock, log } = deps;
  const upstream = createUpstream({
    apiServer: config.apiServer,
    caFile: config.apiServerCa,
    clock,
    log,
    registry,
    ...deps.upstream,
  });
  const metrics = createProxyMetrics(registry);
  const discovery = createDiscovery({ send: upstream.send, clock });
  const accessLog = createAccessLog({ share: config.accessLog, random: deps.random ?? systemRandom, log });
  const pipeline = createPipeline({ session, upstream, ...deps.layers({ discovery }), metrics, clock, log, accessLog });
  const traffic = createTrafficServer({
    listen: config.listen,
    alsoListen: config.alsoListen,
    certificate,
    pipeline,
    tunnel: createTunnel({ origin: upstream.origin, trust: upstream.trust, log, onConnected: upstream.adopt }),
    clock,
    log,
    drainMs: config.drainMs,
    ...deps.traffic,
  });
  const notReady = () => {
    const missing = [certificate.notReady, session.current === undefined ? noSnapshot(session) : undefined];
    const why = missing.filter((text) => text !== undefined).join("; ");
    // Without a certificate it does not listen yet, and the reason is what helps.
    if (certificate.notReady === undefined && !traffic.listening) return "not listening";
    return why === "" ? undefined : why;
  };
  const pages = debugPages({ session, plans: deps.plans ?? NO_PLANS, accessLog, clock });
  const health = createHealthServer({
    listen: config.healthListen,
    registry,
    notReady,
    warning: () => certificate.warning,
    pages,
  });
  const measuring: Runnable = { name: "metrics", start: async () => undefined, stop: async () => metrics.stop() };
  return {
    // The certificate comes from the manager as the routes do: neither waits for the other, and traffic for both.
    groups: [[health, measuring], [upstream], [session, certificate], [traffic]],
    ready: () => ({
      url: `https://${hostPort(config.listen.host, traffic.port)}`,
      healthUrl: `http://${hostPort(config.healthListen.host, health.port)}`,
      ca: certificate.caFile ?? config.tls?.cert ?? "",
    }),
  };
}

function noSnapshot({ trouble }: Partial<ManagerContact>): string {
  return `no snapshot from the manager yet${trouble === undefined ? "" : `: ${trouble}`}`;
}

// A wildcard address is none to connect to.
function hostPort(host: string, port: number): string {
  return formatAddress({ host: host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host, port });
}
