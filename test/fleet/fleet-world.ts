// A cluster of many pods without operators, to load the manager: localkube or the real control plane, namespaces, apps of two
// subsets, pod objects, managers as processes, and simulated proxies. Used by bench/proxies.ts and its small test.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { INJECTED_LABEL } from "../../src/api/injected-pod.ts";
import { MANAGER_STATES, VIRTUAL_APPS } from "../../src/api/resources.ts";
import type { VirtualApp } from "../../src/api/virtual-app.ts";
import { createKubeClient } from "../../src/kube/client/client.ts";
import { NAMESPACES, PODS, SECRETS } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import type { PodRef } from "../../src/mesh/contract/messages.ts";
import { type Child, startChild } from "../support/child-process.ts";
import { eventually } from "../support/eventually.ts";
import { startKube } from "../support/kube.ts";
import { SERVICE_ACCOUNTS } from "../support/mesh/cluster.ts";
import { programMain } from "../support/programs.ts";
import { type Fleet, startFleet } from "./fleet.ts";
import type { FleetPod } from "./worker.ts";

const SERVICE_ACCOUNT = "operator";
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export interface FleetWorldOptions {
  readonly proxies: number;
  readonly namespaces: number;
  /** The default is 1. */
  readonly apps?: number;
  /** Processes of simulated proxies; the default is 2. */
  readonly processes?: number;
  /** Uses the real control plane instead of localkube. */
  readonly real?: boolean;
  /** "mesh" (default): TLS, and a token for each pod. "none": plain text, and removed pods count for 3 s instead of 12 s. */
  readonly identity?: "mesh" | "none";
  /** Gets a line of JSON for each request to localkube. */
  readonly auditLog?: string;
  /** Default: the manager's own. */
  readonly leaseMs?: number;
  /** Flags of Node for the managers, such as --cpu-prof. */
  readonly nodeFlags?: readonly string[];
  readonly note?: (text: string) => void;
}

export interface FleetWorld {
  /** The API server's URL, a kubeconfig of its administrator, and the file with its CA. */
  readonly server: string;
  readonly kubeconfig: string;
  readonly caFile: string;
  readonly client: KubeClient;
  readonly fleet: Fleet;
  readonly pods: readonly PodRef[];
  addManager(): Promise<Child>;
  /** The added manager that leads; undefined while none does. */
  leader(): Promise<Child | undefined>;
  metric(manager: Child, name: string): Promise<number>;
  /** Sends kill -9. */
  kill(manager: Child): Promise<void>;
  relabel(namespace: string, track: string | null): Promise<void>;
  stop(): Promise<void>;
}

/** Starts with one manager and resolves when all proxies are served. */
export async function startFleetWorld(options: FleetWorldOptions): Promise<FleetWorld> {
  const { proxies, namespaces, apps = 1, processes = 2, real = false, identity = "mesh", note = () => undefined } = options;
  const dir = mkdtempSync(join(tmpdir(), "ctrlmesh-fleet-"));
  const kube = real ? await startReal() : await startLocal(dir, options.auditLog);
  const client = createKubeClient({
    server: kube.server,
    caPem: kube.caPem,
    token: () => kube.token,
    userAgent: "ctrlmesh-fleet",
  });
  await defineKinds(client);
  note(`creating ${namespaces} namespaces, ${apps} apps and ${proxies} pods`);
  for (const name of ["ctrlmesh-system", ...appNames(apps)]) await client.create(NAMESPACES, { metadata: { name } });
  await inParallel(namespaces, (index) =>
    client.create(NAMESPACES, {
      metadata: { name: namespaceOf(index), labels: index % 10 === 0 ? { track: "canary" } : {} },
    }),
  );
  for (const name of appNames(apps)) {
    await client.create(SERVICE_ACCOUNTS, { metadata: { namespace: name, name: SERVICE_ACCOUNT } });
    await client.create(VIRTUAL_APPS, virtualApp(name));
  }
  const pods = await inParallel(proxies, (index) => createPod(client, appNames(apps)[index % apps] ?? "", index));

  const managers: Child[] = [];
  let isStopping = false;
  const addManager = async () => {
    const child = await startChild({
      name: `manager ${managers.length}`,
      command: process.execPath,
      args: [
        ...(options.nodeFlags ?? []),
        programMain("manager"),
        "--print-ready",
        "--kubeconfig",
        kube.kubeconfig,
        "--pod-name",
        `ctrlmesh-manager-${managers.length}`,
        "--grpc-listen",
        "127.0.0.1:0",
        "--health-listen",
        "127.0.0.1:0",
        ...(identity === "mesh"
          ? ["--identity", "mesh", "--server-names", "127.0.0.1"]
          : ["--api-server-token-cache-ms", "1000"]),
        ...(options.leaseMs === undefined ? [] : ["--lease-duration-ms", String(options.leaseMs)]),
      ],
    });
    managers.push(child);
    void child.ended.then(() => {
      if (isStopping) return;
      // A Service drops a replica as soon as its container ends, which the kubelet sees at once.
      fleet?.setEndpoints(endpointsOf(managers));
      note(`${child.name} has ended:\n${child.output().slice(-4_000)}`);
    });
    fleet?.setEndpoints(endpointsOf(managers));
    return child;
  };
  let fleet: Fleet | undefined;
  await addManager();
  const [trustPem, fleetPods] = identity === "mesh" ? await identitiesOf(client, pods) : [undefined, withoutTokens(pods)];
  const started = startFleet({ pods: fleetPods, endpoints: endpointsOf(managers), processes, trustPem });
  fleet = started;
  const metric = async (manager: Child, name: string) => {
    const text = await (await fetch(`${String(manager.ready.health)}/metrics`)).text();
    return Number(new RegExp(`^${name} (.+)$`, "m").exec(text)?.[1] ?? Number.NaN);
  };
  return {
    server: kube.server,
    kubeconfig: kube.kubeconfig,
    caFile: kube.caFile,
    client,
    fleet: started,
    pods,
    addManager,
    metric,
    async kill(manager) {
      manager.kill("SIGKILL");
      await eventually(() => manager.exited);
    },
    async leader() {
      for (const manager of managers) {
        if (manager.exited) continue;
        const leads = await metric(manager, "ctrlmesh_manager_leader").catch(() => 0);
        if (leads === 1) return manager;
      }
      return undefined;
    },
    async relabel(namespace, track) {
      await client.patch(NAMESPACES, { name: namespace }, { type: "merge", body: { metadata: { labels: { track } } } });
    },
    async stop() {
      isStopping = true;
      started.stop();
      for (const manager of managers) await manager.stop(5_000);
      await client.close();
      await kube.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export function namespaceOf(index: number): string {
  return `tenant-namespace-${String(index).padStart(6, "0")}`;
}

function appNames(apps: number): string[] {
  return Array.from({ length: apps }, (_, index) => `operator-${index}`);
}

function endpointsOf(managers: readonly Child[]): string[] {
  return managers.filter(({ exited }) => !exited).map(({ ready }) => String(ready.grpc));
}

async function defineKinds(client: KubeClient): Promise<void> {
  const folder = join(ROOT, "deploy/crds");
  for (const file of readdirSync(folder)) {
    const body = parse(readFileSync(join(folder, file), "utf8"));
    await client.request({ method: "POST", path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body });
  }
  await eventually(() => Promise.all([client.list(VIRTUAL_APPS), client.list(MANAGER_STATES)]));
}

function virtualApp(name: string): VirtualApp {
  return {
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "VirtualApp",
    metadata: { name, namespace: name },
    spec: {
      selector: { matchLabels: { component: name } },
      configuration: { controller: { leaderElectionName: name } },
      route: {
        onLoss: "InPlace",
        subRules: [{ name: "canary", match: [{ namespaceSelector: { matchLabels: { track: "canary" } } }] }],
      },
      subsets: [{ name: "canary", labels: { version: "canary" }, routeRules: ["canary"] }],
    },
  };
}

async function createPod(client: KubeClient, app: string, index: number): Promise<PodRef> {
  const name = `${app}-${index}`;
  const isCanary = index % 4 === 3;
  const labels = { component: app, [INJECTED_LABEL]: app, ...(isCanary ? { version: "canary" } : {}) };
  const spec = {
    serviceAccountName: SERVICE_ACCOUNT,
    containers: [{ name: "operator", image: "example.invalid/operator" }],
    initContainers: [{ name: "ctrlmesh-proxy", image: "example.invalid/proxy", restartPolicy: "Always" }],
  };
  const pod = await client.create(PODS, { metadata: { namespace: app, name, labels }, spec } as never);
  const proxy = { name: "ctrlmesh-proxy", ready: true, started: true, restartCount: 0, image: "", imageID: "" };
  const status = { phase: "Running", conditions: [{ type: "Ready", status: "True" }], initContainerStatuses: [proxy] };
  await client.patch(PODS, { namespace: app, name }, { type: "merge", body: { status } }, { subresource: "status" });
  return { namespace: app, name, uid: pod.metadata.uid ?? "" };
}

function withoutTokens(pods: readonly PodRef[]): FleetPod[] {
  return pods.map((pod) => ({ ...pod, token: undefined }));
}

/** The CA of the mesh, which the first manager created, and the pods with tokens as the kubelet would mount them. */
async function identitiesOf(client: KubeClient, pods: readonly PodRef[]): Promise<[string, FleetPod[]]> {
  const secret = await eventually(() => client.get(SECRETS, { namespace: "ctrlmesh-system", name: "ctrlmesh-ca" }), 30_000);
  const withTokens = await inParallel(pods.length, async (index) => {
    const { namespace, name, uid } = pods[index] ?? { namespace: "", name: "", uid: "" };
    const boundObjectRef = { apiVersion: "v1", kind: "Pod", name, uid };
    const body = { spec: { audiences: ["ctrlmesh"], expirationSeconds: 7_200, boundObjectRef } };
    const answer = await client.createSubresource(SERVICE_ACCOUNTS, { namespace, name: SERVICE_ACCOUNT }, "token", body);
    return { namespace, name, uid, token: (answer as { status: { token: string } }).status.token };
  });
  return [Buffer.from(secret.data?.["tls.crt"] ?? "", "base64").toString(), withTokens];
}

async function inParallel<T>(count: number, run: (index: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < count; index = next++) results[index] = await run(index);
  };
  await Promise.all(Array.from({ length: 24 }, worker));
  return results;
}

interface RunningKube {
  readonly server: string;
  readonly caFile: string;
  readonly kubeconfig: string;
  readonly caPem: string;
  readonly token: string;
  stop(): Promise<unknown>;
}

async function startReal(): Promise<RunningKube> {
  return startKube();
}

async function startLocal(dir: string, auditLog = ""): Promise<RunningKube> {
  const child = await startChild({
    name: "localkube",
    command: process.execPath,
    args: [join(ROOT, "test/localkube/main.ts"), "--dir", dir, "--print-ready", "--audit-log", auditLog],
  });
  const { server, kubeconfig, ca, token } = child.ready as { server: string; kubeconfig: string; ca: string; token: string };
  await eventually(() => readFileSync(ca, "utf8").length > 0);
  return { server, kubeconfig, token, caFile: ca, caPem: readFileSync(ca, "utf8"), stop: () => child.stop() };
}
