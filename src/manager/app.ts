// Runs the manager. Every replica keeps its stores warm. The controllers run only in the leader.
import { MANAGER_STATE_NAME, type ManagerStateStatus } from "../api/manager-state.ts";
import { MESH_CLUSTERS } from "../api/resources.ts";
import { systemClock, systemRandom } from "../base/clock.ts";
import { processEnv } from "../base/env.ts";
import { createHealthServer } from "../base/health-server.ts";
import { type Runnable, runGroups } from "../base/lifecycle.ts";
import { createLogger } from "../base/log.ts";
import { createRegistry, measureEventLoop } from "../base/metrics.ts";
import { formatAddress, localAddress } from "../base/settings.ts";
import { VERSION } from "../base/version.ts";
import { createKubeClient } from "../kube/client/client.ts";
import { metadataOnly, type Resource } from "../kube/client/resource.ts";
import { NAMESPACES } from "../kube/client/resources.ts";
import type { KubeObject } from "../kube/types.ts";
import { createControllerMetrics } from "../runtime/controller-metrics.ts";
import { createEventRecorder, type EventRecorder } from "../runtime/events.ts";
import { createInformers } from "../runtime/informers.ts";
import { loadConnection } from "../runtime/kubeconfig.ts";
import { addWebhooks } from "./admission/add.ts";
import { addWebhookConfigurationController } from "./admission/configuration/add.ts";
import { addAppController } from "./app-controller/add.ts";
import { createApps, type Source } from "./apps/app.ts";
import { createCompiler } from "./apps/compile/compiler.ts";
import { createExpressionMatcher } from "./apps/compile/expression-matcher.ts";
import { createPublishedPlans } from "./apps/published-plans.ts";
import { addClusterNamespacesController } from "./cluster-namespaces/add.ts";
import { createWatchedClusters } from "./cluster-namespaces/watched-clusters.ts";
import { addClustersController } from "./clusters/add.ts";
import { createKnownClusters } from "./clusters/known-clusters.ts";
import type { ManagerConfig } from "./config.ts";
import { createReplicaLeadership, LEASE_NAME, type ReplicaLeadership } from "./context/leadership.ts";
import { addDecisionsController } from "./decisions/add.ts";
import { createKnownDecisions } from "./decisions/known-decisions.ts";
import { createPodHistory, recordPods } from "./facts/pod-history.ts";
import { createPodWatch } from "./facts/pod-watch.ts";
import { addIdentity } from "./identity/add.ts";
import { injectionSettings } from "./injection/injection.ts";
import { addLabelsController } from "./labels/add.ts";
import { createLabelStates } from "./labels/label-state.ts";
import { addManagerStateController } from "./manager-state/add.ts";
import { createManagerMetrics } from "./metrics/metrics.ts";
import { addPeersController } from "./peers/add.ts";
import { addPlacementsController } from "./placements/add.ts";
import { addPoliciesController, POLICY_KINDS } from "./policies/add.ts";
import { addProfilesController } from "./profiles/add.ts";
import { createEvictor } from "./restart/evictor.ts";
import { addRolloutController } from "./rollout/add.ts";
import { createProxyJudge } from "./server/judge-proxy.ts";
import { createMeshServer } from "./server/mesh-server.ts";
import { createProxyRegistry } from "./server/proxy-registry.ts";
import { addPlacementController } from "./sharding/placement/add.ts";
import { createShardingSource } from "./sharding/sharding-source.ts";
import { addShardsController } from "./sharding/shards/add.ts";
import { addSlicesController } from "./slices/add.ts";
import { addTrustController } from "./trust/add.ts";
import { createVirtualAppSource } from "./virtual-app/virtual-app-source.ts";

interface ManagerReady {
  readonly grpc: string;
  readonly health: string;
  /** host:port; absent without webhooks. */
  readonly webhooks?: string;
}

interface RunManagerOptions {
  readonly signal: AbortSignal;
  readonly onReady: (ready: ManagerReady) => void;
}

export async function runManager(config: ManagerConfig, { signal, onReady }: RunManagerOptions): Promise<void> {
  const base = await createBase(config);
  const { client, informers, log } = base;
  const watched = createPodWatches(base);
  const leadership: ReplicaLeadership = createReplicaLeadership({
    ...base,
    grpcPort: () => servers.snapshots.port,
    async lead(leading) {
      await watched.beginToLead();
      void servers.mesh?.identity.refresh(); // what a leader does with the CA may be due
      controllers.states.enqueue({ namespace: "", name: MANAGER_STATE_NAME });
      await runGroups([[watched.pods], controllers.all], { signal: leading, log });
    },
  });
  const servers = createServers(base, watched, leadership);
  const events = createEventRecorder({ ...base, component: "ctrlmesh-manager", instance: config.podName });
  const controllers = createControllers(base, { ...watched, ...servers, events, leadership });
  const connection: Runnable = { name: "client", start: async () => undefined, stop: () => client.close() };
  const endMeasuring = measureEventLoop(base.metricsRegistry, "manager");
  const measuring: Runnable = { name: "metrics", start: async () => undefined, stop: async () => endMeasuring() };
  const announce: Runnable = {
    name: "ready",
    async start() {
      const addresses = addressesOf(config, servers);
      const { health, ...others } = addresses;
      log.info({ health: formatAddress(health), ...others }, "serving");
      onReady({ health: `http://${formatAddress(localAddress(health))}`, ...others });
    },
    stop: async () => undefined,
  };
  const { snapshots, health, mesh, webhooks } = servers;
  // The connection is closed last, after the elector has released its lease through it.
  await runGroups(
    [
      [connection, measuring, health],
      [informers, events, ...(mesh?.runnables ?? [])],
      [snapshots, watched.followed, ...(webhooks ? [webhooks] : [])],
      [leadership.runnable, announce],
    ],
    { signal: AbortSignal.any([signal, leadership.lost]), log },
  );
  if (!signal.aborted) throw leadership.lost.reason;
}

export const createSources = (): Source[] => [createVirtualAppSource(), createShardingSource()];

type Base = Awaited<ReturnType<typeof createBase>>;
type PodWatches = ReturnType<typeof createPodWatches>;
type Servers = ReturnType<typeof createServers>;

async function createBase(config: ManagerConfig) {
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
function createPodWatches({ config, informers, apps, clusters, registry, clock, log }: Base) {
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

function createServers(base: Base, { pods, followed }: PodWatches, { isLeader, leaderElsewhere, epochs }: ReplicaLeadership) {
  const { config, apps, registry, clock, log, metricsRegistry } = base;
  // By a URL the API server reaches the webhooks under another name than the Service's.
  const { webhookUrl } = config;
  const urlNames = webhookUrl === "" ? [] : [new URL(webhookUrl).hostname.replace(/^\[|\]$/g, "")];
  const serverNames = [...config.serverNames, ...urlNames];
  const mesh =
    config.identity === "mesh"
      ? addIdentity({ ...config, ...base, isLeader, leaseName: LEASE_NAME, apps, pods: [pods, followed], serverNames })
      : undefined;
  const namespaces = base.informers.store(metadataOnly(NAMESPACES));
  const snapshots = createMeshServer({
    registry,
    leaderElsewhere,
    leadership: epochs,
    clock,
    log,
    listen: config.grpcListen,
    ...(mesh && { security: mesh.security }),
    judge: createProxyJudge({ pods, apps, leaderElsewhere, ...mesh?.security }),
    namespaces: () => namespaces.list().flatMap(({ metadata }) => metadata.name ?? []),
  });
  const health = createHealthServer({
    listen: config.healthListen,
    registry: metricsRegistry,
    notReady() {
      if (mesh !== undefined && mesh.identity.serving === undefined)
        return `no mesh CA yet: ${mesh.identity.problem ?? "not read"}`;
      return apps.hasSynced ? undefined : "the apps have not been listed yet";
    },
  });
  const webhooks =
    mesh && config.webhookListen
      ? addWebhooks({
          ...base,
          listen: config.webhookListen,
          identity: mesh.identity,
          facts: mesh.facts,
          warnsOfMoves: config.warnOfMoves,
          clientCaFile: config.webhookClientCa,
          settings: (cluster) => injectionSettings(config, cluster),
        })
      : undefined;
  const listed = <T extends KubeObject>(resource: Resource<T>) => {
    const store = base.informers.store(resource);
    return { kind: resource.kind, list: () => store.list() };
  };
  const policies = POLICY_KINDS.map(({ resource }) => listed(resource));
  const kinds = [...base.sources.map(({ resource }) => listed(resource)), ...policies, listed(MESH_CLUSTERS)];
  const clusters = () => base.informers.store(MESH_CLUSTERS).list();
  base.observed.readFrom({ registry, apps, policies, kinds, clusters, isLeader, clock });
  return { mesh, snapshots, health, webhooks };
}

function createControllers(
  base: Base,
  parts: PodWatches & Servers & { readonly events: EventRecorder; readonly leadership: ReplicaLeadership },
) {
  const { config } = base;
  const { pods, past, events, mesh, webhooks, snapshots, leadership } = parts;
  const status = (): ManagerStateStatus => ({
    namespace: config.namespace,
    endpoints: [{ name: config.podName, podIP: config.podIP, leader: true }],
    ports: { grpcLeaderElectionPort: snapshots.port, grpcNonLeaderElectionPort: snapshots.port },
  });
  const states = addManagerStateController({ ...base, status });
  const target = {
    namespace: config.namespace,
    serviceName: config.serviceName,
    url: config.webhookUrl,
    timeoutSeconds: config.webhookTimeoutSeconds,
    warnsOfMoves: config.warnOfMoves,
  };
  const entries = webhooks && { target, size: { isTooLarge: false } };
  const { isLeader } = leadership;
  const evictor = createEvictor({ ...base, pods, events, isLeader });
  const { labelFamilies: families } = config;
  const labels = createLabelStates(families);
  const plans = createPublishedPlans();
  const common = { ...base, pods, past, events, evictor, labels, plans, settleMs: config.restartSettleMs, webhooks: entries };
  const apps = base.sources.map((source) => addAppController(source, common));
  const trust = mesh ? [addTrustController({ ...base, identity: mesh.identity })] : [];
  const configurations =
    mesh && entries ? [addWebhookConfigurationController({ ...base, ...entries, identity: mesh.identity })] : [];
  const others = [
    addPlacementController({ ...base, pods, plans }),
    addShardsController(base),
    addRolloutController({ ...base, pods, events, evictor }),
    addLabelsController({ ...base, families, states: labels, perSecond: config.labelsPerSecond }),
    addPoliciesController({ ...base, pods, events }),
    addPeersController({ ...base, pods }),
    addClustersController({ ...base, events, plans }),
    addClusterNamespacesController(base),
    addProfilesController({ ...base, events }),
    addPlacementsController({ ...base, events, plans }),
    addDecisionsController({ ...base, events }),
    addSlicesController({ ...base, events, plans, isOn: config.ownershipSlices }),
  ];
  return { states, all: [base.watched.runnable, ...apps, ...others, states, ...trust, ...configurations] };
}

function addressesOf({ grpcListen, healthListen, webhookListen }: ManagerConfig, { snapshots, health, webhooks }: Servers) {
  return {
    grpc: formatAddress({ ...grpcListen, port: snapshots.port }),
    health: { ...healthListen, port: health.port },
    ...(webhooks && webhookListen ? { webhooks: formatAddress({ ...webhookListen, port: webhooks.port }) } : {}),
  };
}
