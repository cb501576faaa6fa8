// A pod of the scale-out bench: the Go operator, behind a proxy of the mesh or directly at the API server.
import { join } from "node:path";
import { PODS } from "../../src/kube/client/resources.ts";
import { type Child, startChild } from "../../test/support/child-process.ts";
import { freePort } from "../../test/support/free-port.ts";
import { goProgram } from "../../test/support/go-build.ts";
import { podObject, podToken, writeKubeconfig } from "../../test/support/mesh/cluster.ts";
import { type PodWorld, startPod } from "../../test/support/mesh/pod.ts";
import { cpuSecondsOf, memoryOf } from "../../test/support/process-memory.ts";
import { readMetrics } from "../../test/support/proxy-metrics.ts";
import { startByteRelay } from "./byte-relay.ts";

/** What one pod has done so far. Bytes are as sent: encrypted, perhaps compressed. */
export interface PodCounts {
  /** Requests of the operator, without those for its lock. */
  readonly requests: number;
  /** Events after the initial lists. */
  readonly events: number;
  readonly reconciles: number;
  /** Bytes that the operator received, without those for its lock. */
  readonly received: number;
  /** Bytes from the API server to the proxy; without a proxy, those to the operator. */
  readonly fromServer: number;
  readonly proxyCpuSeconds: number;
  /** Objects that wait for a reconcile or are in one. */
  readonly pending: number;
}

export interface BenchPod {
  readonly name: string;
  /** Resident memory of the proxy in MB; 0 without a proxy. */
  proxyRssMb(): number;
  startOperator(): Promise<void>;
  /** All zero before the operator has started. */
  counts(): Promise<PodCounts>;
  stop(): Promise<void>;
}

export interface BenchPodOptions {
  readonly world: PodWorld;
  readonly name: string;
  /** The app whose proxy the pod has; undefined for a pod without a proxy. */
  readonly app: string | undefined;
  /** Flags of the operator. */
  readonly flags: readonly string[];
}

const LOCK = "foo-operator";

export async function startBenchPod(options: BenchPodOptions): Promise<BenchPod> {
  const { world, name, app } = options;
  const behind = app === undefined ? await withoutProxy(world, name) : await withProxy(world, name, app);
  const port = await freePort();
  let operator: Child | undefined;
  return {
    name,
    proxyRssMb: () => (behind.pid === undefined ? 0 : memoryOf(behind.pid).rssMb),
    async startOperator() {
      operator = await startChild({
        name: `operator ${name}`,
        command: await goProgram("test/operators/go-foo"),
        args: ["--leader-election-id", LOCK, "--metrics-bind-address", `127.0.0.1:${port}`, ...options.flags],
        env: { KUBECONFIG: behind.kubeconfig, POD_NAME: name, POD_NAMESPACE: world.appNamespace },
        readyLine: false,
      });
    },
    async counts() {
      const fromServer = behind.fromServer();
      const proxyCpuSeconds = behind.pid === undefined ? 0 : cpuSecondsOf(behind.pid);
      const metrics = operator && (await readMetrics(`http://127.0.0.1:${port}`).catch(() => undefined));
      const sum = (metric: string, labels?: Readonly<Record<string, string>>) => metrics?.sum(metric, labels) ?? 0;
      const received = sum("foo_received_bytes_total");
      return {
        requests: sum("foo_requests_total"),
        events: sum("foo_events_total"),
        reconciles: sum("controller_runtime_reconcile_total"),
        received,
        fromServer: fromServer ?? received,
        proxyCpuSeconds,
        pending: sum("workqueue_depth") + sum("controller_runtime_active_workers"),
      };
    },
    async stop() {
      await operator?.stop(0);
      await behind.stop();
    },
  };
}

interface Behind {
  readonly kubeconfig: string;
  /** The process of the proxy. */
  readonly pid: number | undefined;
  fromServer(): number | undefined;
  stop(): Promise<void>;
}

async function withProxy(world: PodWorld, name: string, app: string): Promise<Behind> {
  const relay = await startByteRelay(world.kube.server);
  const labels = { "statefulset.kubernetes.io/pod-name": name };
  const kube = { ...world.kube, server: relay.url };
  const pod = await startPod({ ...world, kube }, { name, labels, operator: false, egress: false, webhooks: undefined, app });
  return {
    kubeconfig: pod.kubeconfig,
    pid: pod.proxy.pid,
    fromServer: () => relay.received,
    async stop() {
      await pod.stop();
      relay.close();
    },
  };
}

async function withoutProxy({ kube, client, appNamespace, dir }: PodWorld, name: string): Promise<Behind> {
  const { metadata } = await client.create(PODS, podObject(appNamespace, LOCK, name, {}));
  const token = await podToken(client, appNamespace, name, metadata.uid ?? "");
  const kubeconfig = writeKubeconfig(join(dir, `${name}.kubeconfig`), kube.server, kube.caFile, token);
  return { kubeconfig, pid: undefined, fromServer: () => undefined, stop: async () => undefined };
}
