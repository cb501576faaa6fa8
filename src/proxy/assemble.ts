// Puts the proxy's parts together around a session and its layers, in the order in which they start.
// Invariant: health answers before anything else starts, and traffic is the last to start and the first to
// stop, so that the session still follows the manager while requests drain.
import type { Clock, Random } from "../base/clock.ts";
import { createHealthServer } from "../base/health-server.ts";
import type { Runnable } from "../base/lifecycle.ts";
import type { Logger } from "../base/log.ts";
import type { Registry } from "../base/metrics.ts";
import { formatAddress } from "../base/settings.ts";
import type { ProxyConfig } from "./config.ts";
import { debugPages } from "./debug-pages.ts";
import { createEgress } from "./egress/create-egress.ts";
import type { MeshTrustStore } from "./identity/manager-access.ts";
import type { ServingCertificate } from "./identity/serving-certificate.ts";
import { createAccessLog } from "./observe/access-log.ts";
import { createOutbound, type OutboundDeps } from "./outbound/create-outbound.ts";
import { createPolicies } from "./policies/policies.ts";
import { createPolicyMetrics } from "./policies/policy-metrics.ts";
import { createReviews } from "./reviews/create-reviews.ts";
import type { ManagerSession } from "./session/session.ts";

export interface ProxyDeps extends Pick<OutboundDeps, "layers" | "upstream" | "traffic"> {
  /** Tests may leave out what only the manager sends. */
  readonly session: OutboundDeps["session"] & Partial<ManagerSession> & Runnable;
  readonly certificate: ServingCertificate;
  /** The CAs of the mesh; absent without its identity. */
  readonly trust?: MeshTrustStore | undefined;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** What is printed once the proxy is ready. */
export interface ReadyInfo {
  readonly url: string;
  readonly healthUrl: string;
  /**
   * File with the CA that the operator has to trust; the serving certificate's own file if that was given.
   */
  readonly ca: string;
  /** The forward proxy, if there is one. */
  readonly egressUrl?: string;
  /** Where API servers call the operator's webhooks, if there is such a listener. */
  readonly webhookUrl?: string;
}

export interface Proxy {
  /** In the order of their start, for `runGroups`. */
  readonly groups: readonly (readonly Runnable[])[];
  /** Where to find the started proxy. */
  ready(): ReadyInfo;
}

/** Makes the parts; nothing is bound or connected before they start. */
export function createProxy(config: ProxyConfig, deps: ProxyDeps): Proxy {
  const { session, certificate, registry, clock, random, log } = deps;
  const accessLog = createAccessLog({ share: config.accessLog, random, log });
  const metricsOfPolicies = () => createPolicyMetrics(registry);
  const policies = session.policies ?? createPolicies({ clock, random, managerAwayMs: () => 0, metrics: metricsOfPolicies() });
  const outbound = createOutbound(config, { ...deps, policies, accessLog });
  const egress = createEgress(config, { session, policies, accessLog, registry, clock, random, log });
  const { trust } = deps;
  const identity = trust && { certificate, trust };
  const peers = session.peers ?? { current: [], onChange: () => undefined };
  const webhooks = createReviews(config.webhooks, {
    session,
    report: session.reports.setWebhookProblem,
    peers,
    policies,
    identity,
    accessLog,
    accessLogShare: config.accessLog,
    registry,
    clock,
    random,
    log,
    drainMs: config.drainMs,
  });
  const notStarted = () => {
    const missing = [certificate.notReady, session.current === undefined ? notConfigured(session) : undefined];
    const why = missing.filter((text) => text !== undefined).join("; ");
    // Without a certificate it does not listen yet, and the reason is what helps.
    if (certificate.notReady === undefined && !outbound.server.listening) return "not listening";
    return why === "" ? undefined : why;
  };
  const pages = debugPages({ session, plans: outbound.plans, accessLog, clock });
  const health = createHealthServer({
    listen: config.healthListen,
    registry,
    notStarted,
    // Not part of the start: the operator may write its certificate only once it runs.
    notReady: () => notStarted() ?? webhooks?.notReady,
    warning: () => certificate.warning,
    pages,
  });
  const measuring: Runnable = { name: "metrics", start: async () => undefined, stop: async () => outbound.metrics.stop() };
  return {
    // The certificate comes from the manager as the routes do: neither waits for the other, and traffic for
    // both.
    groups: [
      [health, measuring],
      [outbound.apiServer, ...(webhooks?.clients ?? [])],
      [session, certificate],
      [outbound.server, ...(egress === undefined ? [] : [egress.server]), ...(webhooks === undefined ? [] : [webhooks.server])],
    ],
    ready: () => ({
      url: `https://${hostPort(config.listen.host, outbound.server.port)}`,
      healthUrl: `http://${hostPort(config.healthListen.host, health.port)}`,
      ca: certificate.caFile ?? config.tls?.cert ?? "",
      ...(egress === undefined ? {} : { egressUrl: egress.url() }),
      ...(webhooks === undefined ? {} : { webhookUrl: `https://${hostPort(webhooks.listen.host, webhooks.server.port)}` }),
    }),
  };
}

function notConfigured({ awaited = "snapshot", trouble }: Partial<Pick<ManagerSession, "awaited" | "trouble">>): string {
  return `no ${awaited} from the manager yet${trouble === undefined ? "" : `: ${trouble}`}`;
}

// Nobody can connect to a wildcard address.
function hostPort(host: string, port: number): string {
  return formatAddress({ host: host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host, port });
}
