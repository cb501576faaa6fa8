// The manager as it runs: stores are warm in every replica, the controllers run only while this one leads, and proxies that
// reach another replica are sent to the leader.
import { randomUUID } from "node:crypto";
import { MANAGER_STATE_NAME, type ManagerStateStatus } from "../api/manager-state.ts";
import { systemClock, systemRandom } from "../base/clock.ts";
import { processEnv } from "../base/env.ts";
import { MeshError } from "../base/errors.ts";
import { createHealthServer } from "../base/health-server.ts";
import { type Runnable, runGroups } from "../base/lifecycle.ts";
import { createLogger } from "../base/log.ts";
import { createRegistry } from "../base/metrics.ts";
import { formatAddress } from "../base/settings.ts";
import { VERSION } from "../base/version.ts";
import { createKubeClient } from "../kube/client/client.ts";
import { createControllerMetrics } from "../runtime/controller-metrics.ts";
import { createEventRecorder } from "../runtime/events.ts";
import { createInformers } from "../runtime/informers.ts";
import { loadConnection } from "../runtime/kubeconfig.ts";
import { createLeaderElector, type LeaderElector } from "../runtime/leader-election.ts";
import { measureAcks } from "./ack-times.ts";
import { createAdmission } from "./admission.ts";
import type { ManagerConfig } from "./config.ts";
import { addManagerStateController } from "./controllers/manager-state/add.ts";
import { addTrustController } from "./controllers/trust/add.ts";
import { addVirtualAppController } from "./controllers/virtual-app/add.ts";
import { createGonePods } from "./gone-pods.ts";
import { addIdentity } from "./identity/add.ts";
import { createManagerMetrics } from "./metrics.ts";
import { createPodWatch } from "./pod-watch.ts";
import { VIRTUAL_APPS } from "./resources.ts";
import { createProxyRegistry } from "./snapshot-server/proxy-registry.ts";
import { createSnapshotServer, type Leadership } from "./snapshot-server/snapshot-server.ts";

import { addWebhooks } from "./webhooks/add.ts";
import { injectionSettings } from "./webhooks/injection-settings.ts";

const LEASE_NAME = "ctrlmesh-manager";

/** What a supervisor wants to know. */
export interface ManagerReady {
  readonly grpc: string;
  readonly health: string;
  /** host:port; absent without webhooks. */
  readonly webhooks?: string;
}

export interface RunManagerOptions {
  readonly signal: AbortSignal;
  readonly onReady: (ready: ManagerReady) => void;
}

/** Runs until the signal fires and everything is drained. */
export async function runManager(config: ManagerConfig, { signal, onReady }: RunManagerOptions): Promise<void> {
  const log = createLogger({ name: "ctrlmesh-manager", level: config.logLevel });
  const [clock, random] = [systemClock, systemRandom];
  const metricsRegistry = createRegistry("manager", VERSION);
  const userAgent = `ctrlmesh-manager/${VERSION}`;
  const kubeconfig = config.kubeconfig === "" ? {} : { kubeconfig: config.kubeconfig };
  const client = createKubeClient(await loadConnection({ env: processEnv(), userAgent, ...kubeconfig }));
  const informers = createInformers({ client, clock, random, log });
  const observed = createManagerMetrics({ metricsRegistry });
  const registry = createProxyRegistry({ log, ...measureAcks(clock, observed) });

  let elector: LeaderElector | undefined;
  const leaderElsewhere = () => (elector?.isLeader ? undefined : (elector?.leader.split("_").at(-1) ?? ""));
  const leadership: Leadership = {
    get epoch() {
      return elector?.epoch;
    },
    sawEpoch: (epoch) => elector?.raiseEpoch(epoch),
  };
  const pods = createPodWatch({ informers, apps: informers.store(VIRTUAL_APPS), log });
  // Before this replica leads, so that it knows then who was removed just before.
  const followed = createPodWatch({ informers, apps: informers.store(VIRTUAL_APPS), log });
  const gone = createGonePods({ clock });
  const endFollowing = gone.follow(followed);
  const isLeader = () => elector?.isLeader ?? false;
  const mesh =
    config.identity === "mesh"
      ? addIdentity({
          ...{ ...config, client, informers, isLeader, clock, random, log, metricsRegistry },
          pods: [pods, followed],
          serverNames: [...config.serverNames, ...hostOf(config.webhookUrl)],
        })
      : undefined;
  const server = createSnapshotServer({
    listen: config.grpcListen,
    ...(mesh && { security: mesh.security }),
    registry,
    admit: createAdmission({ pods, apps: informers.store(VIRTUAL_APPS), leaderElsewhere, ...mesh?.security }),
    leaderElsewhere,
    leadership,
    clock,
    log,
  });
  const health = createHealthServer({
    listen: config.healthListen,
    registry: metricsRegistry,
    notReady() {
      if (mesh !== undefined && mesh.identity.serving === undefined)
        return `no mesh CA yet: ${mesh.identity.problem ?? "not read"}`;
      return informers.store(VIRTUAL_APPS).hasSynced ? undefined : "VirtualApps have not been listed yet";
    },
  });
  observed.readFrom({ registry, apps: informers.store(VIRTUAL_APPS), isLeader });
  const metrics = createControllerMetrics(metricsRegistry);

  const status = (): ManagerStateStatus => ({
    namespace: config.namespace,
    endpoints: [{ name: config.podName, podIP: config.podIP, leader: true }],
    ports: { grpcLeaderElectionPort: server.port, grpcNonLeaderElectionPort: server.port },
  });
  const events = createEventRecorder({ client, component: "ctrlmesh-manager", instance: config.podName, clock, random, log });
  const apps = addVirtualAppController({
    ...{ client, informers, registry, pods, gone, events, observed, clock, log, metrics },
    isLeader,
    settleMs: config.restartSettleMs,
  });
  const states = addManagerStateController({ client, informers, log, status });
  const webhooks =
    mesh && config.webhookListen
      ? addWebhooks({
          ...{ client, informers, clock, log, metricsRegistry, metrics },
          ...{ listen: config.webhookListen, identity: mesh.identity, facts: mesh.facts },
          target: { namespace: config.namespace, serviceName: config.serviceName, url: config.webhookUrl },
          settings: (cluster) => injectionSettings(config, cluster),
        })
      : undefined;
  const trust = mesh && addTrustController({ client, informers, identity: mesh.identity, log, metrics });
  // Controllers do not run twice: a replica that has lost the lease ends, and comes back as a contender.
  const lost = new AbortController();
  const election: Runnable = {
    name: "leader election",
    async start(starting) {
      elector = createLeaderElector({
        client,
        namespace: config.namespace,
        name: LEASE_NAME,
        // Random, since two replicas may be configured alike; with the address, so that the lease says where to send a proxy.
        identity: `${config.podName}_${randomUUID()}_${formatAddress({ host: config.podIP, port: server.port })}`,
        clock,
        random,
        log,
        ...leaseTimes(config),
        callbacks: {
          async onStartedLeading(leading) {
            states.enqueue({ namespace: "", name: MANAGER_STATE_NAME });
            endFollowing();
            await followed.stop(); // its stores are not shared: what is led by is listed anew
            void mesh?.identity.refresh(); // what a leader does with the CA may be due
            await runGroups([[pods], [apps, states, ...(trust ? [trust] : []), ...(webhooks?.controllers ?? [])]], {
              signal: leading,
              log,
            });
          },
          onStoppedLeading: () => lost.abort(new MeshError("LEADERSHIP_LOST", "leading: the lease is lost")),
        },
      });
      await elector.start(starting);
    },
    stop: async () => elector?.stop(),
  };
  const connection: Runnable = { name: "client", start: async () => undefined, stop: () => client.close() };
  const announce: Runnable = {
    name: "ready",
    async start() {
      const ready = {
        grpc: formatAddress({ ...config.grpcListen, port: server.port }),
        health: `http://127.0.0.1:${health.port}`,
        ...(webhooks && config.webhookListen
          ? { webhooks: formatAddress({ ...config.webhookListen, port: webhooks.server.port }) }
          : {}),
      };
      log.info({ ...ready }, "serving");
      onReady(ready);
    },
    stop: async () => undefined,
  };
  // The connection is closed last, after the elector has released its lease through it.
  const until = AbortSignal.any([signal, lost.signal]);
  await runGroups(
    [
      [connection, health],
      [informers, events, ...(mesh?.runnables ?? [])],
      [server, followed, ...(webhooks ? [webhooks.server] : [])],
      [election, announce],
    ],
    { signal: until, log },
  );
  if (!signal.aborted) throw lost.signal.reason;
}

// By a URL the API server reaches us under another name than the Service's.
function hostOf(url: string): string[] {
  return url === "" ? [] : [new URL(url).hostname.replace(/^\[|\]$/g, "")];
}

// client-go's proportions: 15 s, 10 s, 2 s.
function leaseTimes({ leaseDurationMs }: ManagerConfig) {
  return { leaseDurationMs, renewDeadlineMs: (leaseDurationMs * 2) / 3, retryPeriodMs: (leaseDurationMs * 2) / 15 };
}
