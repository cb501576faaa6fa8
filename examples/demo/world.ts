// The demo's cluster: the actions of an act on it. What is in it at the beginning is the act's setting. Called by perform.ts and the acts.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createKubeClient } from "../../src/kube/client/client.ts";
import { CONFIG_MAPS, NAMESPACES } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { eventually } from "../../test/support/eventually.ts";
import type { Setting } from "./act.ts";
import { type AuditEvent, type OperatorInAudit, parseAudit } from "./audit.ts";
import { FOOS, type Foo, readManifests } from "./manifests.ts";
import { createPodWebhooks, type PodWebhooks } from "./pod-webhooks.ts";
import { createServiceAccount, type DemoPod, endPod, type PodPlan, startPod } from "./pods.ts";
import type { ApiServer, Processes } from "./processes.ts";

/** The one Foo of each namespace. */
export const FOO_NAME = "greeting";

/** Bound of short waits. */
const PATIENCE_MS = 60_000;
const SYSTEM_NAMESPACE = "ctrlmesh-system";
const CRD_FILES = ["deploy/crds", "test/operators/go-foo/crd.yaml"];
const USER_AGENT = "ctrlmesh-demo";

export interface World {
  readonly setting: Setting;
  readonly apiServer: ApiServer;
  /** A client with the rights of a cluster administrator. */
  readonly client: KubeClient;
  /** The pods that run, by name. */
  readonly pods: readonly DemoPod[];
  /** Undefined if the operator has no webhook. */
  readonly webhooks: PodWebhooks | undefined;
  /** The operator for a judge of the audit log. */
  readonly operator: OperatorInAudit;
  /** Starts a pod and reports it Ready. */
  startPod(plan: PodPlan): Promise<void>;
  /** Deletes a pod, and ends its processes. */
  endPod(name: string): Promise<void>;
  /** Starts the API server of another cluster. */
  startApiServer(name: string): Promise<{ readonly apiServer: ApiServer; readonly auditLog: string }>;
  createFoo(namespace: string, message: string): Promise<void>;
  sayFoo(namespace: string, message: string): Promise<Foo>;
  foo(namespace: string): Promise<Foo>;
  /** A client with a pod's token, through its proxy. */
  clientOf(pod: DemoPod): KubeClient;
  /** The audit log of all requests until now. */
  audit(): Promise<readonly AuditEvent[]>;
  close(): Promise<void>;
}

export interface WorldOptions {
  readonly setting: Setting;
  readonly processes: Processes;
  /** An empty folder for all files of the demo. */
  readonly dir: string;
}

/** Starts the API server, with the objects of the setting, and the manager. */
export async function openWorld({ setting, processes, dir }: WorldOptions): Promise<World> {
  const auditLog = join(dir, "audit.log");
  const apiServer = await processes.apiServer(dir, auditLog);
  const clients: KubeClient[] = [];
  const connect = (server: string, ca: string, token: string) => {
    const client = createKubeClient({ server, caPem: readFileSync(ca, "utf8"), token: () => token, userAgent: USER_AGENT });
    clients.push(client);
    return client;
  };
  const client = connect(apiServer.server, apiServer.ca, apiServer.token);
  await fill(client, setting);
  await publishClusterCa(client, setting, apiServer);
  const webhooks = setting.hasWebhook ? await createPodWebhooks(dir) : undefined;
  const manager = await processes.manager(apiServer.kubeconfig, webhooks !== undefined);
  const context = { setting, client, processes, apiServer, manager, dir, webhooks };
  const pods = new Map<string, DemoPod>();
  const subsetOfPod = new Map<string, string>();
  const ref = (namespace: string) => ({ namespace, name: FOO_NAME });

  return {
    setting,
    apiServer,
    client,
    webhooks,
    get pods() {
      return [...pods.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    },
    operator: { subsetOfPod, lock: { namespace: setting.namespace, name: setting.lockName } },
    async startPod(plan) {
      subsetOfPod.set(plan.name, plan.subset);
      pods.set(plan.name, await startPod(plan, context));
    },
    async endPod(name) {
      pods.delete(name);
      await endPod(name, context);
    },
    async startApiServer(name) {
      const own = join(dir, `cluster-${name}`);
      mkdirSync(own);
      const log = join(own, "audit.log");
      return { apiServer: await processes.apiServer(own, log, `localkube of ${name}`), auditLog: log };
    },
    async createFoo(namespace, message) {
      const apiVersion = `${FOOS.group}/${FOOS.version}`;
      await client.create(FOOS, { apiVersion, kind: FOOS.kind, metadata: ref(namespace), spec: { message } } as Foo);
    },
    sayFoo: (namespace, message) => client.patch(FOOS, ref(namespace), { type: "merge", body: { spec: { message } } }),
    foo: (namespace) => client.get(FOOS, ref(namespace)),
    clientOf: ({ proxy, token }) => connect(proxy.url, proxy.ca, token),
    async audit() {
      // The log is written after the response: once it has our request, it has all earlier ones.
      const mark = `/version?mark=${performance.now()}`;
      await client.request({ method: "GET", path: mark });
      await eventually(() => readFileSync(auditLog, "utf8").includes(mark), PATIENCE_MS);
      return parseAudit(readFileSync(auditLog, "utf8"));
    },
    async close() {
      await Promise.all(clients.map((open) => open.close()));
    },
  };
}

// Creates the objects in the order in which they need each other.
async function fill(client: KubeClient, { manifests, namespace }: Setting): Promise<void> {
  await client.create(NAMESPACES, { metadata: { name: SYSTEM_NAMESPACE } });
  for (const { path, object } of [...CRD_FILES, ...manifests].flatMap(readManifests)) {
    // The API server serves a kind a moment after the creation of its CRD.
    await eventually(() => client.request({ method: "POST", path, body: object }), PATIENCE_MS);
  }
  await createServiceAccount(client, namespace);
}

// kube-controller-manager does this for each namespace.
async function publishClusterCa(client: KubeClient, { namespace }: Setting, { ca }: ApiServer): Promise<void> {
  const data = { "ca.crt": readFileSync(ca, "utf8") };
  await client.create(CONFIG_MAPS, { metadata: { namespace, name: "kube-root-ca.crt" }, data });
}
