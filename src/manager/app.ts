// Runs the manager. Every replica keeps its stores warm. The controllers run only in the leader.
import { MANAGER_STATE_NAME } from "../api/manager-state.ts";
import { type Runnable, runGroups } from "../base/lifecycle.ts";
import { measureEventLoop } from "../base/metrics.ts";
import { formatAddress, localAddress } from "../base/settings.ts";
import { createEventRecorder } from "../runtime/events.ts";
import type { ManagerConfig } from "./config.ts";
import { createReplicaLeadership, type ReplicaLeadership } from "./context/leadership.ts";
import { createBase, createPodWatches } from "./create-base.ts";
import { createControllers } from "./create-controllers.ts";
import { createServers, type Servers } from "./create-servers.ts";

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

function addressesOf({ grpcListen, healthListen, webhookListen }: ManagerConfig, { snapshots, health, webhooks }: Servers) {
  return {
    grpc: formatAddress({ ...grpcListen, port: snapshots.port }),
    health: { ...healthListen, port: health.port },
    ...(webhooks && webhookListen ? { webhooks: formatAddress({ ...webhookListen, port: webhooks.port }) } : {}),
  };
}
