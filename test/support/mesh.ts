// A whole mesh on a control plane: CRDs, service accounts, the manager, and pods that are processes: a pod object, its
// proxy, and, if wished, an operator behind it. The fixture plays the kubelet: it runs what the pod object stands for, gives
// it a pod-bound token, and reports the pod's status. The audit log names the pod of every write by that token.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { createKubeClient } from "../../src/kube/client/client.ts";
import type { Resource } from "../../src/kube/client/resource.ts";
import { NAMESPACES, PODS, type Pod } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { type Child, startChild } from "./child-process.ts";
import { eventually } from "./eventually.ts";
import { goProgram } from "./go-build.ts";
import type { AuditEvent, Kube } from "./kube.ts";
import { kubectl } from "./kubectl.ts";
import { readProxyImage } from "./proxy-image.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const SERVICE_ACCOUNTS: Resource = {
  group: "",
  version: "v1",
  resource: "serviceaccounts",
  kind: "ServiceAccount",
  namespaced: true,
};

export interface Foo extends KubeObject {
  readonly spec?: { readonly message?: string };
  readonly status?: { readonly reconciledBy?: string; readonly count?: number; readonly observedGeneration?: number };
}
export const FOOS: Resource<Foo> = { group: "demo.ctrlmesh.io", version: "v1", resource: "foos", kind: "Foo", namespaced: true };

export interface MeshOptions {
  readonly kube: Kube;
  /** Where the app lives; default "foo-system". */
  readonly appNamespace?: string;
  /** The VirtualApp's name and its lock's; default "foo-operator". */
  readonly appName?: string;
  /** What the proxies run; default src/proxy/main.ts. */
  readonly proxyMain?: string;
  readonly verbose?: boolean;
}

export interface PodOptions {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Run the Go operator behind the proxy. */
  readonly operator?: boolean;
  /** The VirtualApp that the pod belongs to; default the mesh's own. */
  readonly app?: string;
}

/** A pod that runs as processes. */
export interface MeshPod {
  readonly name: string;
  readonly proxyUrl: string;
  readonly healthUrl: string;
  /** PEM of the CA of the proxy's certificate. */
  readonly proxyCaPem: string;
  /** Reaches the API server through the proxy as the pod. */
  readonly kubeconfig: string;
  /** Reaches it through the proxy as cluster administrator, to see what the mesh lets through, not what RBAC does. */
  readonly adminKubeconfig: string;
  readonly token: string;
  readonly proxy: Child;
  readonly operator: Child | undefined;
  /** kill -9 of the proxy, then a new one with the same data folder and port. */
  restartProxy(): Promise<void>;
  killProxy(): Promise<void>;
  /** Ends the processes and deletes the pod object. */
  remove(): Promise<void>;
}

export interface Mesh {
  readonly client: KubeClient;
  readonly kube: Kube;
  readonly appNamespace: string;
  readonly appName: string;
  readonly manager: Child;
  addPod(options: PodOptions): Promise<MeshPod>;
  killManager(): Promise<void>;
  startManager(): Promise<void>;
  createNamespace(name: string, labels?: Readonly<Record<string, string>>): Promise<void>;
  labelNamespace(name: string, labels: Readonly<Record<string, string | null>>): Promise<void>;
  createFoo(namespace: string, name: string, message: string): Promise<Foo>;
  foo(namespace: string, name: string): Promise<Foo>;
  apply(yaml: string): Promise<string>;
  /** Writes of the pods, from the audit log: which pod, which namespace, which object. */
  podWrites(): PodWrite[];
  stop(): Promise<void>;
}

export interface PodWrite {
  readonly pod: string;
  readonly verb: string;
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly code: number;
}

const POD_NAME_CLAIM = "authentication.kubernetes.io/pod-name";

/** Brings the cluster to the point where a VirtualApp can be applied, and starts a manager. */
export async function startMesh(options: MeshOptions): Promise<Mesh> {
  const { kube, appNamespace = "foo-system", appName = "foo-operator", verbose = false } = options;
  const proxyMain = options.proxyMain ?? join(ROOT, "src/proxy/main.ts");
  const dir = mkdtempSync(join(tmpdir(), "ctrlmesh-mesh-"));
  const client = createKubeClient({
    server: kube.server,
    caPem: kube.caPem,
    token: () => kube.token,
    userAgent: "ctrlmesh-test",
  });
  const image = readProxyImage();
  const pods = new Set<MeshPod>();
  const apply = (yaml: string) => kubectl(kube.kubeconfig, ["apply", "-f", "-"], yaml);

  await kubectl(kube.kubeconfig, ["apply", "-f", join(ROOT, "deploy/crds"), "-f", join(ROOT, "test/operators/go-foo/crd.yaml")]);
  await kubectl(kube.kubeconfig, ["wait", "--for=condition=Established", "crd", "--all", "--timeout=20s"]);
  await apply(clusterYaml(appNamespace));
  await kubectl(kube.kubeconfig, ["apply", "-f", join(ROOT, "test/operators/go-foo/rbac.yaml")]);

  let grpc = "127.0.0.1:0";
  const launchManager = async () => {
    const child = await startChild({
      name: "manager",
      command: process.execPath,
      args: [
        join(ROOT, "src/manager/main.ts"),
        "--print-ready",
        "--kubeconfig",
        kube.kubeconfig,
        "--grpc-listen",
        grpc,
        "--health-listen",
        "127.0.0.1:0",
        "--lease-duration-ms",
        "5000",
        "--log-level",
        "debug",
      ],
      verbose,
    });
    grpc = String(child.ready.grpc);
    return child;
  };
  let manager = await launchManager();

  async function addPod({ name, labels = {}, operator = false, app = appName }: PodOptions): Promise<MeshPod> {
    const pod = await client.create(PODS, podObject(appNamespace, app, name, labels));
    const uid = pod.metadata.uid ?? "";
    const token = await podToken(client, appNamespace, name, uid);
    const dataDir = join(dir, name);
    mkdirSync(dataDir, { recursive: true });
    let listen = "127.0.0.1:0";
    let healthListen = "127.0.0.1:0";
    const launchProxy = async () => {
      const child = await startChild({
        name: `proxy ${name}`,
        command: process.execPath,
        env: image.env,
        args: [
          ...image.nodeFlags,
          proxyMain,
          "--print-ready",
          "--api-server",
          kube.server,
          "--api-server-ca",
          kube.caFile,
          "--manager",
          grpc,
          "--pod-name",
          name,
          "--pod-namespace",
          appNamespace,
          "--pod-uid",
          uid,
          "--data-dir",
          dataDir,
          "--listen",
          listen,
          "--health-listen",
          healthListen,
          "--log-level",
          "debug",
        ],
        verbose,
      });
      const ready = child.ready as { url: string; healthUrl: string };
      listen = new URL(ready.url).host;
      healthListen = new URL(ready.healthUrl).host;
      return child;
    };
    let proxy = await launchProxy();
    const ready = proxy.ready as { url: string; healthUrl: string; ca: string };
    const kubeconfig = writeKubeconfig(join(dataDir, "pod.kubeconfig"), ready.url, ready.ca, token);
    const adminKubeconfig = writeKubeconfig(join(dataDir, "admin.kubeconfig"), ready.url, ready.ca, kube.token);
    await setPodStatus(client, appNamespace, name);
    await eventually(async () => (await fetch(`${ready.healthUrl}/readyz`)).ok, { withinMs: 20_000 }).catch((cause) => {
      throw new Error(`proxy of ${name} is not ready\n${proxy.output()}\nmanager:\n${manager.output()}`, { cause });
    });
    const child = operator ? await startOperator(kubeconfig, appNamespace, app, name, verbose) : undefined;
    const handle: MeshPod = {
      name,
      proxyUrl: ready.url,
      healthUrl: ready.healthUrl,
      proxyCaPem: readFileSync(ready.ca, "utf8"),
      kubeconfig,
      adminKubeconfig,
      token,
      get proxy() {
        return proxy;
      },
      operator: child,
      async killProxy() {
        proxy.kill("SIGKILL");
        await proxy.stop();
      },
      async restartProxy() {
        proxy.kill("SIGKILL");
        await proxy.stop();
        proxy = await launchProxy();
      },
      async remove() {
        pods.delete(handle);
        await child?.stop();
        await proxy.stop();
        await client.delete(PODS, { namespace: appNamespace, name }, { gracePeriodSeconds: 0 });
      },
    };
    pods.add(handle);
    return handle;
  }

  return {
    client,
    kube,
    appNamespace,
    appName,
    addPod,
    apply,
    get manager() {
      return manager;
    },
    async killManager() {
      manager.kill("SIGKILL");
      await manager.stop();
    },
    async startManager() {
      manager = await launchManager();
    },
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
    podWrites: () => kube.audit().flatMap(podWrite),
    async stop() {
      for (const pod of pods) {
        await pod.operator?.stop(2_000);
        await pod.proxy.stop(5_000);
      }
      await manager.stop(5_000);
      await client.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function podWrite(event: AuditEvent): PodWrite[] {
  const pod = event.user.extra?.[POD_NAME_CLAIM]?.[0];
  const { objectRef } = event;
  // A review is a question: it changes nothing.
  if (pod === undefined || objectRef === undefined || objectRef.apiGroup === "authorization.k8s.io") return [];
  const { resource, namespace = "", name = "", subresource } = objectRef;
  return [
    {
      pod,
      verb: event.verb,
      resource: subresource === undefined ? resource : `${resource}/${subresource}`,
      namespace,
      name,
      code: event.responseStatus?.code ?? 0,
    },
  ];
}

function clusterYaml(appNamespace: string): string {
  const binding = (name: string, role: string) => ({
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
    subjects: [{ kind: "ServiceAccount", name: "foo-operator", namespace: appNamespace }],
  });
  const named = (kind: string, name: string, namespace?: string) => ({
    apiVersion: "v1",
    kind,
    metadata: { name, ...(namespace ? { namespace } : {}) },
  });
  return [
    named("Namespace", appNamespace),
    named("Namespace", "ctrlmesh-system"),
    named("ServiceAccount", "foo-operator", appNamespace),
    binding(`foo-operator-${appNamespace}`, "foo-operator"),
  ]
    .map((object) => stringify(object))
    .join("---\n");
}

function podObject(namespace: string, app: string, name: string, labels: Readonly<Record<string, string>>): Pod {
  return {
    metadata: { namespace, name, labels: { component: app, "ctrlmesh.kruise.io/virtual-app-injected": app, ...labels } },
    spec: { serviceAccountName: "foo-operator", containers: [{ name: "operator", image: "example.invalid/foo-operator" }] },
  };
}

async function podToken(client: KubeClient, namespace: string, name: string, uid: string): Promise<string> {
  const body = { spec: { expirationSeconds: 3600, boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid } } };
  const answer = await client.createSubresource(SERVICE_ACCOUNTS, { namespace, name: "foo-operator" }, "token", body);
  return (answer as { status: { token: string } }).status.token;
}

async function setPodStatus(client: KubeClient, namespace: string, name: string): Promise<void> {
  const body = { status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } };
  await client.patch(PODS, { namespace, name }, { type: "merge", body }, { subresource: "status" });
}

function writeKubeconfig(path: string, server: string, ca: string, token: string): string {
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "pod",
    clusters: [{ name: "mesh", cluster: { server, "certificate-authority": ca } }],
    users: [{ name: "pod", user: { token } }],
    contexts: [{ name: "pod", context: { cluster: "mesh", user: "pod" } }],
  };
  writeFileSync(path, stringify(config), { mode: 0o600 });
  return path;
}

async function startOperator(kubeconfig: string, namespace: string, app: string, name: string, verbose: boolean): Promise<Child> {
  return startChild({
    name: `operator ${name}`,
    command: await goProgram("test/operators/go-foo"),
    args: ["--leader-election-id", app, "--lease-duration", "4s", "--renew-deadline", "3s", "--retry-period", "500ms"],
    env: { KUBECONFIG: kubeconfig, POD_NAME: name, POD_NAMESPACE: namespace },
    readyLine: false,
    verbose,
  });
}
