// A small replacement for the kubelet: it runs the pods that real controllers (Deployments, StatefulSets) create in one namespace
// as processes of this machine. No process of a pod lives longer than the pod's object. Needs no root, unlike test/node,
// where pods are injected and have networks.
//
// It binds the pods, runs the proxy and the operator of their containers, reports their status, and restarts processes that ended. At
// deletion it sends SIGTERM, waits for the grace period, reports that the containers have ended, and removes the object.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hasEgress } from "../../src/api/injected-pod.ts";
import { PODS, type Pod } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { isStatus } from "../../src/kube/status.ts";
import type { Kube } from "./kube.ts";
import { endedStatus } from "./mesh/cluster.ts";
import { createPodProcesses, type PodProcesses } from "./pod-processes.ts";

/** All pods share the loopback, so each proxy takes a free port. */
const EGRESS_FLAGS = { "egress-listen": "127.0.0.1:0", "egress-private-addresses": "127.0.0.0/8" };
const NODE = "pod-runner";
const PROXY_CONTAINER = "ctrlmesh-proxy";
const LOOK_MS = 200;

export interface PodRunnerOptions {
  readonly kube: Kube;
  readonly client: KubeClient;
  /** The manager's gRPC server, "host:port". */
  readonly manager: string;
  readonly namespace: string;
  /** The leader-election lock of the Go operator. If absent, no operator runs. */
  readonly lockName?: string;
  /** Additional flags of the operator. */
  readonly operatorFlags?: readonly string[];
  /** While it is false, the pod's operator does not run, and the pod is not ready. By default always true. */
  readonly mayOperatorRun?: (pod: { readonly name: string; readonly uid: string }) => boolean;
  /** The proxies know the managers by the mesh's identity; the default is false. */
  readonly identity?: boolean;
  /** The pods that it runs; the default is all. */
  readonly labelSelector?: string;
  readonly verbose?: boolean;
}

/** A pod that runs or ran. */
export interface RunnerPod {
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly processes: PodProcesses;
  /** True after SIGTERM. */
  readonly isEnding: boolean;
}

export interface PodRunner {
  /** The pods with existing objects, by name. */
  readonly pods: ReadonlyMap<string, RunnerPod>;
  /** Ends all processes and keeps the objects. */
  stop(): Promise<void>;
}

interface Running extends RunnerPod {
  isEnding: boolean;
  reported: string;
  /** The condition Ready as reported, and since when. */
  readiness: { readonly isReady: boolean; readonly since: string };
  isBusy: boolean;
  /** The operations on the pod, one after the other. */
  turn: Promise<void>;
}

/** Runs the pods of the namespace from now on. */
export function startPodRunner(options: PodRunnerOptions): PodRunner {
  const { client, namespace, labelSelector } = options;
  const dir = mkdtempSync(join(tmpdir(), "ctrlmesh-pods-"));
  const pods = new Map<string, Running>();
  const stopping = new AbortController();
  const { signal } = stopping;

  const start = (pod: Pod): Running => {
    const { name = "", uid = "", labels = {} } = pod.metadata;
    const running: Running = {
      name,
      uid,
      labels,
      isEnding: false,
      isBusy: false,
      reported: "",
      readiness: { isReady: false, since: nowInSeconds() },
      turn: Promise.resolve(),
      processes: createPodProcesses({
        ...options,
        name,
        uid,
        dataDir: join(dir, uid),
        hasProxy: pod.spec?.initContainers?.some((container) => container.name === PROXY_CONTAINER) ?? false,
        ...(hasEgress(pod) ? { flags: EGRESS_FLAGS } : {}),
      }),
    };
    const before = pods.get(name);
    if (before !== undefined) then(before, () => before.processes.stop(0));
    pods.set(name, running);
    return running;
  };

  async function end(pod: Running, graceMs: number): Promise<void> {
    await pod.processes.stop(graceMs);
    await reportEnded(client, namespace, pod);
    await removeObject(client, namespace, pod);
  }

  function sync(pod: Pod): void {
    const { name = "", uid, deletionTimestamp } = pod.metadata;
    const known = pods.get(name)?.uid === uid ? pods.get(name) : undefined;
    if (known?.isEnding) return;
    if (deletionTimestamp !== undefined) {
      const ending = known ?? start(pod);
      ending.isEnding = true;
      const graceMs = 1000 * ((pod.metadata as { deletionGracePeriodSeconds?: number }).deletionGracePeriodSeconds ?? 30);
      then(ending, () => end(ending, graceMs));
      return;
    }
    const running = known ?? start(pod);
    if (running.isBusy) return;
    running.isBusy = true;
    then(running, async () => {
      if (pod.spec?.nodeName === undefined && known === undefined) await bind(client, namespace, name);
      await running.processes.keepUp(signal);
      await report(client, namespace, running);
    });
  }

  function then(pod: Running, work: () => Promise<void>): void {
    pod.turn = pod.turn
      .then(work)
      .catch((error: unknown) => {
        // The API server may be down; the next pass tries again.
        if (options.verbose && !signal.aborted) process.stderr.write(`[pod-runner] ${pod.name}: ${String(error)}\n`);
        pod.isEnding = false;
      })
      .finally(() => {
        pod.isBusy = false;
      });
  }

  async function lookAtAll(): Promise<void> {
    const { items } = await client.list(PODS, { namespace, labelSelector, signal });
    for (const pod of items) sync(pod);
    for (const [name, running] of pods) {
      if (items.some(({ metadata }) => metadata.uid === running.uid)) continue;
      if (pods.get(name) === running) pods.delete(name);
      then(running, () => running.processes.stop(0));
    }
  }

  const looking = (async () => {
    while (!signal.aborted) {
      await lookAtAll().catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  })();

  return {
    pods,
    async stop() {
      stopping.abort();
      await looking;
      const all = [...pods.values()];
      await Promise.all(all.map((pod) => pod.turn));
      await Promise.all(all.map((pod) => pod.processes.stop(2_000)));
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function bind(client: KubeClient, namespace: string, name: string): Promise<void> {
  const body = { apiVersion: "v1", kind: "Binding", metadata: { namespace, name }, target: { kind: "Node", name: NODE } };
  await client.createSubresource(PODS, { namespace, name }, "binding", body);
}

async function report(client: KubeClient, namespace: string, pod: Running): Promise<void> {
  const { hasProxy, hasStarted, isProxyReady, isReady, proxyRestarts, operatorRestarts } = pod.processes;
  if (pod.readiness.isReady !== isReady) pod.readiness = { isReady, since: nowInSeconds() };
  const condition = (type: string, is: boolean) => ({ type, status: is ? "True" : "False" });
  const container = (name: string, ready: boolean, restartCount: number) => ({
    name,
    ready,
    started: ready,
    restartCount,
    image: "example.invalid/image",
    imageID: "",
    state: ready ? { running: {} } : { waiting: { reason: "PodInitializing" } },
  });
  const status = {
    phase: hasStarted ? "Running" : "Pending",
    podIP: "127.0.0.1",
    podIPs: [{ ip: "127.0.0.1" }],
    conditions: [
      condition("PodScheduled", true),
      condition("Initialized", hasStarted),
      condition("ContainersReady", isReady),
      { ...condition("Ready", isReady), lastTransitionTime: pod.readiness.since },
    ],
    ...(hasProxy ? { initContainerStatuses: [container(PROXY_CONTAINER, isProxyReady, proxyRestarts)] } : {}),
    containerStatuses: [container("operator", isReady, operatorRestarts)],
  };
  const text = JSON.stringify(status);
  if (text === pod.reported) return;
  const body = { metadata: { uid: pod.uid }, status };
  await client.patch(PODS, { namespace, name: pod.name }, { type: "merge", body }, { subresource: "status" });
  pod.reported = text;
}

/** As the API server writes times. */
function nowInSeconds(): string {
  return `${new Date().toISOString().slice(0, 19)}Z`;
}

async function reportEnded(client: KubeClient, namespace: string, { name, uid, processes }: RunnerPod): Promise<void> {
  const body = { metadata: { uid }, status: endedStatus(["operator"], processes.hasProxy ? [PROXY_CONTAINER] : []) };
  await client.patch(PODS, { namespace, name }, { type: "merge", body }, { subresource: "status" }).catch((error: unknown) => {
    if (!isStatus(error, "NotFound", "Conflict")) throw error;
  });
}

async function removeObject(client: KubeClient, namespace: string, { name, uid }: RunnerPod): Promise<void> {
  const options = { gracePeriodSeconds: 0, preconditions: { uid } };
  await client.delete(PODS, { namespace, name }, options).catch((error: unknown) => {
    if (!isStatus(error, "NotFound", "Conflict")) throw error;
  });
}
