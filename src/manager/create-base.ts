// What the servers and the controllers of the manager share: the connection, the stores, the apps, and the facts about proxies and pods.
import { systemClock, systemRandom } from "../base/clock.ts";
import { processEnv } from "../base/env.ts";
import { createLogger } from "../base/log.ts";
import { createRegistry } from "../base/metrics.ts";
import { VERSION } from "../base/version.ts";
import { createKubeClient } from "../kube/client/client.ts";
import { createControllerMetrics } from "../runtime/controller-metrics.ts";
import { createInformers } from "../runtime/informers.ts";
import { loadConnection } from "../runtime/kubeconfig.ts";
import { createApps, type Source } from "./apps/app.ts";
import { createCompiler } from "./apps/compile/compiler.ts";
import { createExpressionMatcher } from "./apps/compile/expression-matcher.ts";
import { createWatchedClusters } from "./cluster-namespaces/watched-clusters.ts";
import { createKnownClusters } from "./clusters/known-clusters.ts";
import type { ManagerConfig } from "./config.ts";
import { createKnownDecisions } from "./decisions/known-decisions.ts";
import { createPodHistory, recordPods } from "./facts/pod-history.ts";
import { createPodWatch } from "./facts/pod-watch.ts";
import { createManagerMetrics } from "./metrics/metrics.ts";
import { createProxyRegistry } from "./server/proxy-registry.ts";
import { createShardingSource } from "./sharding/sharding-source.ts";
import { createVirtualAppSource } from "./virtual-app/virtual-app-source.ts";

export const createSources = (): Source[] => [createVirtualAppSource(), createShardingSource()];

export type Base = Awaited<ReturnType<typeof createBase>>;
export type PodWatches = ReturnType<typeof createPodWatches>;

export async function createBase(config: ManagerConfig) {
  const log = createLogger({ name: "ctrlmesh-manager", level: config.logLevel });
  const [clock, random] = [systemClock, systemRandom];
  const metricsRegistry = createRegistry("manager", VERSION);
  const userAgent = `ctrlmesh-manager/${VERSION}`;
  const kubeconfig = config.kubeconfig === "" ? {} : { kubeconfig: config.kubeconfig };
  const connection = await loadConnection({ env: processEnv(), userAgent, ...kubeconfig });
  const { server, skipTlsVerify } = connection;
  const unverified = "the API server's certificate is not verified: the kubeconfig has insecure-skip-tls-verify";
  if (skipTlsVerify) log.warn({ server }, unverified);
  const client = createKubeClient(connection);
  const informers = createInformers({ client, clock, random, log });
  const sources = createSources();
  const apps = createApps(informers, sources);
  const observed = createManagerMetrics({ metricsRegistry });
  const registry = createProxyRegistry({ log, clock, onRouteAcked: observed.snapshotAcknowledged });
  const metrics = createControllerMetrics(metricsRegistry);
  const decisions = createKnownDecisions();
  const clusters = createKnownClusters(informers, decisions);
  const watched = createWatchedClusters({ userAgent, clock, random, log });
  const compile = createCompiler({ matchExpressions: createExpressionMatcher(), clock });
  return {
    config,
    log,
    clock,
    random,
    client,
    informers,
    sources,
    apps,
    clusters,
    decisions,
    watched,
    compile,
    registry,
    observed,
    metrics,
    metricsRegistry,
  };
}

/** Every replica watches pods, so that a new leader knows which pods were removed just before. */
export function createPodWatches({ config, informers, apps, clusters, registry, clock, log }: Base) {
  const pods = createPodWatch({ informers, apps, log });
  const followed = createPodWatch({ informers, apps, log });
  const past = createPodHistory({ clock, tokenCacheMs: config.apiServerTokenCacheMs, longestDrainMs: clusters.longestDrainMs });
  const endFollowing = past.follow(followed);
  recordPods(pods, past, registry);
  return {
    pods,
    followed,
    past,
    async beginToLead() {
      endFollowing();
      await followed.stop(); // a leader lists the pods anew, in stores of its own
    },
  };
}
