// The proxy as it runs in a pod: its parts around a session, in the order in which they start. Invariant:
// health answers before anything else starts, and traffic is the last to start and the first to stop, so that
// the session still follows the manager while requests drain.
import { systemClock, systemRandom } from "../base/clock.ts";
import { cpuShare } from "../base/env.ts";
import { createHealthServer } from "../base/health-server.ts";
import { type Runnable, type RunOptions, runGroups } from "../base/lifecycle.ts";
import type { ListenAddress } from "../base/listener.ts";
import { createLogger } from "../base/log.ts";
import { createRegistry } from "../base/metrics.ts";
import { podUri } from "../base/pem.ts";
import type { ProcessContext } from "../base/process-context.ts";
import { formatAddress, localAddress } from "../base/settings.ts";
import { VERSION } from "../base/version.ts";
import type { ClusterReportMessage } from "../mesh/contract/messages.ts";
import { createClusters } from "./clusters/create-clusters.ts";
import type { ProxyConfig } from "./config.ts";
import { debugPages } from "./debug-pages.ts";
import { createClusterGate } from "./egress/cluster-gate.ts";
import { createEgress } from "./egress/create-egress.ts";
import { createHomeProof } from "./home/home-proof.ts";
import { createProofKeeper } from "./home/keep-proof.ts";
import { createIdentity } from "./identity/create-identity.ts";
import type { MeshTrustStore } from "./identity/manager-access.ts";
import type { ServingCertificate } from "./identity/serving-certificate.ts";
import { createAccessLog } from "./observe/access-log.ts";
import { createClusterReach } from "./observe/cluster-reach.ts";
import { createOutbound, type OutboundDeps } from "./outbound/create-outbound.ts";
import { createReviews } from "./reviews/create-reviews.ts";
import { createSession } from "./session/create-session.ts";
import type { ManagerSession } from "./session/session.ts";
import { createStateFolder } from "./state/state-folder.ts";
import { createWarmUp } from "./warm-up/warm-up.ts";

/** How much longer than the drain of its parts the process waits before it gives up. */
const DRAIN_MARGIN_MS = 2_000;

export async function runProxy(config: ProxyConfig, { signal, onReady }: RunOptions): Promise<void> {
  const log = createLogger({ name: "ctrlmesh-proxy", level: config.logLevel });
  const registry = createRegistry("proxy", VERSION);
  const [clock, random] = [systemClock, systemRandom];
  const state = createStateFolder(config.dataDir, log);
  const pod = { namespace: config.podNamespace, name: config.podName, uid: config.podUid };
  const clientName = config.webhooks && podUri(pod);
  const { access, certificate, peerTrust: trust } = createIdentity({ config, state, clientName, registry, clock, random, log });
  const session = createSession({ config, state, access, log, clock, random, registry, proxyVersion: VERSION });
  const proxy = createProxy(config, { session, certificate, trust, registry, clock, random, log });
  const announce: Runnable = {
    name: "ready",
    async start() {
      const ready = proxy.ready();
      log.info({ ...ready, ...proxy.listenUrls(), manager: config.manager, apiServer: config.apiServer }, "serving");
      onReady(ready);
    },
    stop: async () => undefined,
  };
  // Behind the announcement, so that the operator does not wait for it.
  const warmUp = createWarmUp({ certificate, session, maxMs: config.warmUpMs, cpuShare, clock, random, log });
  await runGroups([...proxy.groups, [announce], [warmUp]], { signal, log, drainMs: config.drainMs + DRAIN_MARGIN_MS });
}

export interface ProxyDeps extends Pick<OutboundDeps, "layers" | "upstream" | "traffic">, ProcessContext {
  readonly session: ManagerSession;
  readonly certificate: ServingCertificate;
  /** Absent without the mesh's identity. */
  readonly trust?: MeshTrustStore | undefined;
}

export interface ReadyInfo {
  readonly url: string;
  readonly healthUrl: string;
  /** File with the CA for the operator, or the file of the given serving certificate. */
  readonly ca: string;
  readonly egressUrl: string | undefined;
  readonly webhookUrl: string | undefined;
}

/** Nothing is bound or connected before the parts start. */
export function createProxy(config: ProxyConfig, deps: ProxyDeps) {
  const { session, certificate, trust, registry, clock, random, log } = deps;
  const { policies, peers } = session;
  const accessLog = createAccessLog({ share: config.accessLog, random, log });
  const home = config.egressListen && createHomeProof(config.podUid, clock);
  const reach = createClusterReach({ session, clock, report: (seen: ClusterReportMessage) => session.report("clusters", seen) });
  const outbound = createOutbound(config, {
    ...deps,
    policies,
    accessLog,
    home,
    createClusters: (parts) => createClusters({ ...parts, registry, upstream: deps.upstream, session, home, reach }),
  });
  const clusters = home && createClusterGate({ session, home, lock: outbound.gate, clock, log });
  const egress = createEgress(config, { session, reach, policies, clusters, accessLog, registry, clock, random, log });
  const keeper = home && createProofKeeper({ home, send: outbound.apiServer.send, isNeeded: () => ownsCluster(session), clock });
  const reviews = createReviews(config, {
    session,
    report: (problem) => session.report("webhookProblem", problem),
    peers,
    policies,
    identity: trust && { certificate, trust },
    accessLog,
    registry,
    clock,
    random,
    log,
  });
  const notStarted = () => {
    // Without a certificate the server does not listen yet, and the reason of the certificate says more.
    if (certificate.notReady === undefined && !outbound.server.listening) return "not listening";
    const missing = [certificate.notReady, session.current === undefined ? notConfigured(session) : undefined];
    return missing.filter((text) => text !== undefined).join("; ") || undefined;
  };
  const health = createHealthServer({
    listen: config.healthListen,
    registry,
    notStarted,
    // No condition of the start: the operator may write its webhook certificate only once it runs.
    notReady: () => notStarted() ?? reviews?.notReady,
    warning: () => certificate.warning,
    pages: debugPages({ session, policies, plans: outbound.plans, gate: outbound.gate, home, accessLog, clock, random }),
  });
  const urls = (shown: (address: ListenAddress) => ListenAddress) => ({
    url: urlOf("https", shown(config.listen), outbound.server),
    healthUrl: urlOf("http", shown(config.healthListen), health),
    egressUrl: egress && urlOf("http", shown(egress.listen), egress),
    webhookUrl: reviews && urlOf("https", shown(reviews.listen), reviews.server),
  });
  const measuring: Runnable = { name: "metrics", start: async () => undefined, stop: async () => outbound.metrics.stop() };
  const clustersOut: Runnable = { name: "clusters", start: async () => undefined, stop: async () => outbound.clusters?.stop() };
  return {
    /** In the order of their start, for `runGroups`. */
    groups: [
      [health, measuring],
      [outbound.apiServer, clustersOut],
      // The first two wait for the manager, and traffic waits for both. The last one works until the traffic has ended: without a
      // proof the last writes to other clusters would be cut.
      [session, certificate, keeper].filter((part) => part !== undefined),
      [outbound.server, egress, reviews?.server].filter((part) => part !== undefined),
    ],
    ready: (): ReadyInfo => ({
      ...urls(localAddress),
      ca: certificate.caFile ?? config.tls?.cert ?? "",
    }),
    /** The URLs of `ready` with the addresses at which the servers listen, such as 0.0.0.0. */
    listenUrls: () => urls((address) => address),
  };
}

function urlOf(scheme: "http" | "https", { host }: ListenAddress, { port }: { readonly port: number }): string {
  return `${scheme}://${formatAddress({ host, port })}`;
}

function ownsCluster({ current }: ManagerSession): boolean {
  const { subset } = current?.snapshot ?? {};
  return current?.snapshot.clusters?.some(({ owner, upstream }) => owner === subset || upstream !== undefined) ?? false;
}

function notConfigured({ awaited = "snapshot", trouble }: ManagerSession): string {
  return `no ${awaited} from the manager yet${trouble === undefined ? "" : `: ${trouble}`}`;
}
