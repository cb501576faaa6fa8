// The demo's cluster: its content, the actions of the story on it, and its visible state. Called by main.ts and story.ts.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { createKubeClient } from "../../src/kube/client/client.ts";
import { LEASES, NAMESPACES } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { eventually } from "../../test/support/eventually.ts";
import { APP_FILE, type DemoApp, NAMESPACES_FILE } from "./app.ts";
import { FOOS, type Foo, readManifests } from "./manifests.ts";
import { createServiceAccount, type DemoPod, PLANS, startPod } from "./pods.ts";
import type { ApiServer, Processes } from "./processes.ts";
import { type AuditEvent, parseAudit } from "./tally.ts";
import type { Facts } from "./view.ts";

/** The one Foo of each namespace. */
export const FOO_NAME = "greeting";

/** Bound of short waits. */
const PATIENCE_MS = 60_000;
const SYSTEM_NAMESPACE = "ctrlmesh-system";
const CRD_FILES = ["deploy/crds", "test/operators/go-foo/crd.yaml"];
const USER_AGENT = "ctrlmesh-demo";

export interface World {
  readonly app: DemoApp;
  readonly apiServer: ApiServer;
  /** A client with the rights of a cluster administrator. */
  readonly client: KubeClient;
  readonly pods: readonly DemoPod[];
  /** The present namespaces, locks and apps. */
  facts(): Promise<Facts>;
  createNamespace(name: string): Promise<void>;
  labelNamespace(name: string, labels: Readonly<Record<string, string>>): Promise<void>;
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
  readonly app: DemoApp;
  readonly processes: Processes;
  /** An empty folder for all files of the demo. */
  readonly dir: string;
}

/** Starts everything; resolves when all pods are Ready. */
export async function openWorld({ app, processes, dir }: WorldOptions): Promise<World> {
  const auditLog = join(dir, "audit.log");
  const apiServer = await processes.apiServer(dir, auditLog);
  const clients: KubeClient[] = [];
  const connect = (server: string, ca: string, token: string) => {
    const client = createKubeClient({ server, caPem: readFileSync(ca, "utf8"), token: () => token, userAgent: USER_AGENT });
    clients.push(client);
    return client;
  };
  const client = connect(apiServer.server, apiServer.ca, apiServer.token);
  await fill(client, app);
  const manager = await processes.manager(apiServer.kubeconfig);
  const context = { app, client, processes, apiServer, manager, dir };
  const pods = await Promise.all(PLANS.map((plan) => startPod(plan, context)));
  const ref = (namespace: string) => ({ namespace, name: FOO_NAME });

  return {
    app,
    apiServer,
    client,
    pods,
    facts: () => lookAt(client, app),
    async createNamespace(name) {
      await client.create(NAMESPACES, { metadata: { name } });
    },
    async labelNamespace(name, labels) {
      await client.patch(NAMESPACES, { name }, { type: "merge", body: { metadata: { labels } } });
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
async function fill(client: KubeClient, app: DemoApp): Promise<void> {
  const apply = async (file: string) => {
    for (const { path, object } of readManifests(file)) {
      // The API server serves a kind a moment after the creation of its CRD.
      await eventually(() => client.request({ method: "POST", path, body: object }), PATIENCE_MS);
    }
  };
  for (const file of [...CRD_FILES, NAMESPACES_FILE]) await apply(file);
  await client.create(NAMESPACES, { metadata: { name: SYSTEM_NAMESPACE } });
  await apply(APP_FILE);
  await createServiceAccount(client, app.namespace);
}

async function lookAt(client: KubeClient, app: DemoApp): Promise<Facts> {
  const [foos, namespaces, leases, virtualApp] = await Promise.all([
    client.list(FOOS),
    client.list(NAMESPACES),
    client.list(LEASES, { namespace: app.namespace }),
    client.get(VIRTUAL_APPS, app),
  ]);
  const ownerOf = app.ownersOf(namespaces.items);
  const waits = virtualApp.status?.handover?.waitingOn ?? [];
  const condition = (type: string) => virtualApp.status?.conditions?.find((one) => one.type === type);
  const converged = condition("Converged");
  const served = Map.groupBy(foos.items, ({ metadata }) => metadata.namespace ?? "");
  return {
    app: {
      name: app.name,
      ready: condition("Ready")?.status ?? "Unknown",
      converged: converged?.status === "True",
      message: converged?.message ?? "",
    },
    namespaces: [...served]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([namespace, own]) => ({
        namespace,
        subset: ownerOf(namespace),
        moving: waits.some((wait) => wait.namespace === namespace),
        reconciledBy: [...new Set(own.flatMap(({ status }) => status?.reconciledBy ?? []))].sort(),
        count: own.reduce((sum, { status }) => sum + (status?.count ?? 0), 0),
      })),
    locks: leases.items
      .map(({ metadata, spec }) => ({ lock: metadata.name ?? "", leader: (spec?.holderIdentity ?? "").split("_")[0] ?? "" }))
      .sort((a, b) => (a.lock < b.lock ? -1 : 1)),
  };
}
