// The nodes, which differ only by name. A node watches its pods, runs each with a pod worker, writes its status, and updates
// Services and /etc/hosts. It removes a pod's object only after the containers have ended and the status says so.
import { systemClock, systemRandom } from "../../src/base/clock.ts";
import { createLogger } from "../../src/base/log.ts";
import { createKubeClient } from "../../src/kube/client/client.ts";
import { isStatus } from "../../src/kube/status.ts";
import { createEventRecorder } from "../../src/runtime/events.ts";
import { createInformers } from "../../src/runtime/informers.ts";
import type { NodeSettings } from "./agent-protocol.ts";
import { KUBELET_PORT, startKubeletApi } from "./kubelet-api.ts";
import { createPodNetworks } from "./network.ts";
import { registerNode } from "./node-object.ts";
import { CONFIG_MAPS, type Keyed, NODE_PODS, type NodePod, SECRETS } from "./pod-types.ts";
import { type NodeContext, type PodWorker, startPodWorker } from "./pod-worker.ts";
import { pause } from "./probes.ts";
import { keepServiceRoutes } from "./service-routes.ts";
import { createStatusReporter, type StatusReporter } from "./status-reporter.ts";
import type { TestImage, TestImages } from "./test-image.ts";

export interface TestNode {
  readonly workers: ReadonlyMap<string, PodWorker>;
  addImages(images: TestImages): void;
  /** Ends all containers at once. The objects stay. */
  stop(): Promise<void>;
}

const TOKEN_LOOK_MS = 5_000;
const RETRY_MS = 300;

export async function startNode(settings: NodeSettings, stateDir: string): Promise<TestNode> {
  const log = createLogger({ name: "test-node", level: "error" });
  const { server, caPem, token, nodeNames } = settings;
  const client = createKubeClient({ server, caPem, token: () => token, userAgent: "kubelet/test-node" });
  const shared = { client, clock: systemClock, random: systemRandom, log };
  const recorder = createEventRecorder({ ...shared, component: "kubelet", instance: nodeNames[0] ?? "" });
  const informers = createInformers(shared);
  const pods = informers.store(NODE_PODS);
  const configMaps = informers.store(CONFIG_MAPS);
  const secrets = informers.store(SECRETS);
  const images = new Map<string, TestImage>(Object.entries(settings.images));
  const workers = new Map<string, PodWorker>();
  const reporters = new Map<PodWorker, StatusReporter>();
  const networks = createPodNetworks();
  const stopping = new AbortController();
  const { signal } = stopping;

  const routes = keepServiceRoutes(informers, settings.serviceRange, () => {
    for (const worker of workers.values()) worker.refreshHosts();
  });
  const context: NodeContext = {
    ...settings,
    client,
    stateDir,
    addNetwork: () => networks.add(),
    image: (name) => images.get(name),
    objects: (namespace) => ({
      configMap: (name) => configMaps.get(name, namespace),
      secret: (name) => secrets.get(name, namespace),
    }),
    hosts: routes.hosts,
    event: (pod, type, reason, message) => recorder.event({ ...pod, apiVersion: "v1", kind: "Pod" }, type, reason, message),
    onChange: (worker) => reporters.get(worker)?.update(),
  };

  function see(pod: NodePod): void {
    if (!nodeNames.includes(pod.spec.nodeName ?? "")) return;
    const { uid = "", deletionTimestamp, deletionGracePeriodSeconds = 30 } = pod.metadata;
    const known = workers.get(uid);
    if (known !== undefined) known.update(pod);
    if (deletionTimestamp !== undefined) return void remove(pod, known, deletionGracePeriodSeconds * 1000);
    if (known !== undefined) return void reporters.get(known)?.update();
    if (isOver(pod)) return;
    const worker = startPodWorker(pod, context);
    workers.set(uid, worker);
    const reporter = createStatusReporter(client, worker, signal);
    reporters.set(worker, reporter);
    reporter.update();
  }

  async function remove(pod: NodePod, worker: PodWorker | undefined, graceMs: number): Promise<void> {
    const { uid = "", name = "", namespace = "" } = pod.metadata;
    if (worker?.isEnding) return void worker.end(graceMs); // a second deletion may shorten the time
    await worker?.end(graceMs);
    if (worker !== undefined) await reporters.get(worker)?.settled();
    const preconditions = { uid };
    while (!signal.aborted) {
      const error: unknown = await client.delete(NODE_PODS, { namespace, name }, { gracePeriodSeconds: 0, preconditions }).then(
        () => undefined,
        (cause: unknown) => cause,
      );
      if (error === undefined || isStatus(error, "NotFound", "Conflict")) break;
      await pause(RETRY_MS, signal);
    }
    forget(uid, worker);
  }

  function forget(uid: string, worker: PodWorker | undefined): void {
    workers.delete(uid);
    if (worker !== undefined) reporters.delete(worker);
  }

  pods.onChange((change) => {
    if (change.type !== "deleted") return see(change.object);
    const { uid = "" } = change.object.metadata;
    const worker = workers.get(uid);
    // Removed by force.
    if (worker !== undefined) void worker.end(0).then(() => forget(uid, worker));
  });
  const refresh = ({ object }: { readonly object: Keyed }) => {
    for (const worker of workers.values()) {
      if (worker.pod.metadata.namespace === object.metadata.namespace) void worker.refresh();
    }
  };
  configMaps.onChange(refresh);
  secrets.onChange(refresh);
  const tokenTimer = setInterval(() => {
    for (const worker of workers.values()) void worker.refresh();
  }, TOKEN_LOOK_MS);

  void recorder.start(signal);
  void informers.start(signal);
  await informers.synced;
  const kubelet = await startKubeletApi(
    (namespace, name, container) =>
      findWorker(workers.values(), namespace, name)?.containers.find((each) => each.name === container)?.logFile,
  );
  for (const name of nodeNames) await registerNode(client, name, KUBELET_PORT, signal);

  return {
    workers,
    addImages(more) {
      for (const [name, image] of Object.entries(more)) images.set(name, image);
    },
    async stop() {
      clearInterval(tokenTimer);
      stopping.abort();
      kubelet.closeAllConnections();
      kubelet.close();
      await Promise.all([...workers.values()].map((worker) => worker.end(0)));
      await informers.stop?.();
      await client.close();
    },
  };
}

/** The newest pod of that name. */
export function findWorker(workers: Iterable<PodWorker>, namespace: string, name: string): PodWorker | undefined {
  return [...workers].findLast(({ pod: { metadata } }) => metadata.namespace === namespace && metadata.name === name);
}

function isOver({ status }: NodePod): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}
