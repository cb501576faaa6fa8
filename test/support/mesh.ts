// A whole mesh on a control plane: CRDs, service accounts, the managers, and pods as processes. A pod has an object, a proxy and
// optionally an operator. The fixture replaces the kubelet: it runs the pod's processes, mounts a pod-bound token and reports the pod's
// status. Because of that token, the audit log names the pod of every write.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createKubeClient } from "../../src/kube/client/client.ts";
import { NAMESPACES } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import type { Child } from "./child-process.ts";
import type { Kube } from "./kube.ts";
import { kubectl } from "./kubectl.ts";
import { FOOS, type Foo, prepareCluster } from "./mesh/cluster.ts";
import { startManagers } from "./mesh/managers.ts";
import { type MeshPod, type PodOptions, startPod } from "./mesh/pod.ts";
import { type PodWrite, podWritesOf } from "./mesh/pod-writes.ts";
import type { Supervised } from "./supervised.ts";

export { FOOS, type Foo, podToken, writeKubeconfig } from "./mesh/cluster.ts";
export { type MeshPod, type PodOptions, startOperator } from "./mesh/pod.ts";
export type { PodWrite } from "./mesh/pod-writes.ts";

export interface MeshOptions {
  readonly kube: Kube;
  /** The app's namespace; the default is "foo-system". */
  readonly appNamespace?: string;
  /** The name of the VirtualApp and of its lock; the default is "foo-operator". */
  readonly appName?: string;
  /** The program of the proxies, which then warm up; the default is that of programs.ts, which does not. */
  readonly proxyMain?: string;
  /** The managers' access to the control plane; the default is its administrator. */
  readonly managerKubeconfig?: string;
  /** Replicas of the manager; default 1. */
  readonly managers?: number;
  /** The duration of the managers' lease; default 5,000. */
  readonly leaseDurationMs?: number;
  /** Proxies and managers know each other by the mesh's identity, as after an installation; the default is false. Every pod needs a proxy container. */
  readonly identity?: boolean;
  /** Restarts proxies and operators that end; the default is false. (Managers are always restarted.) */
  readonly restarts?: boolean;
  readonly verbose?: boolean;
  /** Chooses the replica for a proxy's connection: numbers from 0 to 1. */
  readonly random?: () => number;
}

export interface Mesh {
  readonly client: KubeClient;
  readonly kube: Kube;
  readonly appNamespace: string;
  readonly appName: string;
  /** The first replica. */
  readonly manager: Child;
  readonly managers: readonly Supervised[];
  /** The host:port of the managers for proxies, like a Service. */
  readonly managerAddress: string;
  addPod(options: PodOptions): Promise<MeshPod>;
  /** Sends kill -9 to the first replica, which is not started again. */
  killManager(): Promise<void>;
  startManager(): Promise<void>;
  createNamespace(name: string, labels?: Readonly<Record<string, string>>): Promise<void>;
  labelNamespace(name: string, labels: Readonly<Record<string, string | null>>): Promise<void>;
  createFoo(namespace: string, name: string, message: string): Promise<Foo>;
  foo(namespace: string, name: string): Promise<Foo>;
  apply(yaml: string): Promise<string>;
  /** The writes of the pods in the audit log. */
  podWrites(): PodWrite[];
  stop(): Promise<void>;
}

/** Prepares the cluster for a VirtualApp and starts the managers. */
export async function startMesh(options: MeshOptions): Promise<Mesh> {
  const {
    kube,
    appNamespace = "foo-system",
    appName = "foo-operator",
    verbose = false,
    restarts = false,
    identity = false,
  } = options;
  const dir = mkdtempSync(join(tmpdir(), "ctrlmesh-mesh-"));
  const client = createKubeClient({
    server: kube.server,
    caPem: kube.caPem,
    token: () => kube.token,
    userAgent: "ctrlmesh-test",
  });
  await prepareCluster(kube, appNamespace);
  const managers = await startManagers({
    kube,
    identity,
    replicas: options.managers ?? 1,
    leaseDurationMs: options.leaseDurationMs ?? 5_000,
    verbose,
    ...(options.managerKubeconfig === undefined ? {} : { kubeconfig: options.managerKubeconfig }),
    ...(options.random === undefined ? {} : { random: options.random }),
  });
  const first = () => managers.all[0] as Supervised;
  const pods = new Set<MeshPod>();
  const world = {
    kube,
    client,
    appNamespace,
    manager: managers.service.address,
    ...(options.proxyMain === undefined ? {} : { proxyMain: options.proxyMain }),
    dir,
    identity,
    restarts,
    verbose,
    managerOutput: () => managers.all.map(({ child }) => child.output()).join("\n"),
  };

  return {
    client,
    kube,
    appNamespace,
    appName,
    managers: managers.all,
    managerAddress: managers.service.address,
    get manager() {
      return first().child;
    },
    async addPod({ labels = {}, operator = false, app = appName, egress = false, webhooks, name }) {
      const pod = await startPod(world, { name, labels, operator, app, egress, webhooks });
      pods.add(pod);
      return pod;
    },
    killManager: () => first().kill(),
    startManager: () => first().start(),
    async createNamespace(name, labels = {}) {
      await client.create(NAMESPACES, { metadata: { name, labels } });
    },
    async labelNamespace(name, labels) {
      await client.patch(NAMESPACES, { name }, { type: "merge", body: { metadata: { labels } } });
    },
    createFoo: (namespace, name, message) =>
      client.create(FOOS, {
        apiVersion: "demo.ctrlmesh.io/v1",
        kind: "Foo",
        metadata: { namespace, name },
        spec: { message },
      } as Foo),
    foo: (namespace, name) => client.get(FOOS, { namespace, name }),
    apply: (yaml) => kubectl(kube.kubeconfig, ["apply", "-f", "-"], yaml),
    podWrites: () => podWritesOf(kube.audit()),
    async stop() {
      for (const pod of pods) await pod.stop();
      await managers.stop();
      await client.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
