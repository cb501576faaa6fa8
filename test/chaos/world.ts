// The world of a chaos run: a real control plane, three managers, a VirtualApp with two subsets, five pods
// with real proxies and a controller-runtime operator, a sharded family beside it (family.ts), and namespaces
// with Foos. Every edit is repeated until the API server accepts it.
import { setTimeout as sleep } from "node:timers/promises";
import { stringify } from "yaml";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { LEASES, NAMESPACES } from "../../src/kube/client/resources.ts";
import { isStatus } from "../../src/kube/status.ts";
import type { Child } from "../support/child-process.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { WEBHOOK_SERVER } from "../support/mesh/pod.ts";
import { FOOS, type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { APP, CANARY, createDesiredOwners, type DesiredOwners, type Ending, LANE_LABEL } from "./desired-owners.ts";
import { type ChaosFamily, startChaosFamily } from "./family.ts";
import { type ChaosPolicies, createChaosPolicies } from "./policies.ts";
import { type ChaosWebhooks, startChaosWebhooks } from "./webhooks.ts";

const MANAGERS = 3;
const PODS: readonly { readonly name: string; readonly subset: string }[] = [
  { name: "foo-0", subset: "" },
  { name: "foo-1", subset: "" },
  { name: "foo-2", subset: "" },
  { name: "foo-canary-0", subset: CANARY },
  { name: "foo-canary-1", subset: CANARY },
];
const FOOS_EACH = 3;
const REQUEST_MS = 3_000;

/** A pod of either app. */
export interface AnyPod {
  readonly name: string;
  readonly proxy: Child | undefined;
  readonly operator: Child | undefined;
}

export interface ChaosWorld {
  readonly kube: Kube;
  readonly mesh: Mesh;
  readonly owners: DesiredOwners;
  /** The pods by name. A new pod replaces an old one of the same name. */
  readonly pods: ReadonlyMap<string, MeshPod>;
  readonly family: ChaosFamily;
  readonly policies: ChaosPolicies;
  /** Undefined unless the operator has webhooks. */
  readonly webhooks: ChaosWebhooks | undefined;
  /** The pods of both apps. */
  allPods(): readonly AnyPod[];
  subsetOf(pod: string): string | undefined;
  createNamespace(labelled: boolean): Promise<string>;
  deleteNamespace(name: string): Promise<void>;
  relabel(namespace: string): Promise<void>;
  editRules(ending: Ending): Promise<void>;
  /** Edits one Foo. Does nothing if the API server is down. */
  editFoo(namespace: string, index: number, message: string): Promise<void>;
  /** The manager that holds the lease; undefined if the API server does not respond. */
  leadingManager(): Promise<number | undefined>;
  /** Stops a pod's processes, deletes its object and creates the pod again. */
  replacePod(name: string): Promise<void>;
  /**
   * Deletes a pod's object while its processes continue for some time, then creates the pod again. This
   * happens on a node that the control plane considers lost.
   */
  loseNode(name: string, forMs: number): Promise<void>;
  stop(): Promise<void>;
}

export interface WorldOptions {
  readonly random: () => number;
  readonly namespaces: number;
  /** The operator of the VirtualApp has webhooks, and so all proxies an identity of the mesh. */
  readonly webhooks: boolean;
  /** Keeps the control plane's folder with its audit log there. By default nothing is kept. */
  readonly dir?: string;
  /** Prints the output of all processes; the default is false. */
  readonly verbose?: boolean;
}

export async function startChaosWorld(options: WorldOptions): Promise<ChaosWorld> {
  const { random, namespaces, webhooks: withWebhooks, dir, verbose = false } = options;
  const kube = await startKube({ controllerManager: true, ...(dir === undefined ? {} : { dir }) });
  const mesh = await startMesh({ kube, managers: MANAGERS, identity: withWebhooks, restarts: true, random, verbose });
  const names = PODS.map(({ name }) => name);
  const webhooks = withWebhooks ? await startChaosWebhooks(mesh, names, random) : undefined;
  const owners = createDesiredOwners();
  const pods = new Map<string, MeshPod>();
  const { client } = mesh;
  const stopping = new AbortController();
  let born = 0;
  let family: ChaosFamily | undefined;

  /**
   * Repeats a request until the API server accepts it. No request for the opposite may run at the same time.
   */
  const repeatUntilAccepted = async (send: () => Promise<unknown>): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        return void (await send());
      } catch (error) {
        if (isStatus(error, "AlreadyExists")) return;
        if (isStatus(error, "Invalid")) throw error;
        await sleep(200);
      }
    }
  };
  const addPod = async (name: string) => {
    const labels = { version: PODS.find((pod) => pod.name === name)?.subset === CANARY ? CANARY : "v1" };
    pods.set(name, await mesh.addPod({ name, labels, operator: true, webhooks: webhooks?.ofPod(name) }));
  };
  const world: ChaosWorld = {
    kube,
    mesh,
    owners,
    pods,
    policies: createChaosPolicies(mesh, repeatUntilAccepted),
    webhooks,
    get family() {
      if (family === undefined) throw new Error("the family has not started");
      return family;
    },
    allPods: () => [
      ...pods.values(),
      ...[...world.family.pods.values()].map(({ name, processes: { proxy, operator } }) => ({ name, proxy, operator })),
    ],
    subsetOf: (name) => PODS.find((pod) => pod.name === name)?.subset,
    async createNamespace(labelled) {
      const name = `n${String(born++).padStart(2, "0")}`;
      owners.noteNamespace(name, labelled, Date.now());
      await repeatUntilAccepted(() => mesh.createNamespace(name, labelled ? { [LANE_LABEL]: "canary" } : {}));
      for (let index = 0; index < FOOS_EACH; index++)
        await repeatUntilAccepted(() => mesh.createFoo(name, `foo-${index}`, "born"));
      return name;
    },
    async deleteNamespace(name) {
      owners.noteDeath(name);
      await repeatUntilAccepted(() => client.delete(NAMESPACES, { name }, { timeoutMs: REQUEST_MS }).catch(notFoundIsFine));
    },
    async relabel(namespace) {
      const labelled = !owners.isLabelled(namespace);
      owners.noteNamespace(namespace, labelled, Date.now());
      await repeatUntilAccepted(() => mesh.labelNamespace(namespace, { [LANE_LABEL]: labelled ? "canary" : null }));
    },
    async editRules(ending) {
      owners.noteEnding(ending, Date.now());
      const body = { spec: specOf(ending, withWebhooks) };
      await repeatUntilAccepted(() => client.patch(VIRTUAL_APPS, APP, { type: "merge", body }, { timeoutMs: REQUEST_MS }));
    },
    async editFoo(namespace, index, message) {
      const key = { namespace, name: `foo-${index}` };
      const body = { spec: { message } };
      await client.patch(FOOS, key, { type: "merge", body }, { timeoutMs: REQUEST_MS }).catch(() => undefined);
    },
    async leadingManager() {
      const key = { namespace: "ctrlmesh-system", name: "ctrlmesh-manager" };
      const lease = await client.get(LEASES, key, { timeoutMs: REQUEST_MS }).catch(() => undefined);
      const holder = /^ctrlmesh-manager-(\d+)_/.exec(lease?.spec?.holderIdentity ?? "")?.[1];
      return holder === undefined ? undefined : Number(holder);
    },
    async replacePod(name) {
      await pods.get(name)?.stop();
      await repeatUntilAccepted(async () => {
        await pods.get(name)?.remove().catch(notFoundIsFine);
        await addPod(name);
      });
    },
    async loseNode(name, forMs) {
      await repeatUntilAccepted(async () => pods.get(name)?.deleteObject().catch(notFoundIsFine));
      await sleep(forMs);
      await world.replacePod(name);
    },
    async stop() {
      stopping.abort();
      await family?.stop();
      await mesh.stop();
      await webhooks?.stop();
      await kube.stop();
    },
  };
  try {
    await mesh.apply(virtualApp(withWebhooks));
    owners.noteEnding("", Date.now());
    for (let index = 0; index < namespaces; index++) await world.createNamespace(index % 3 === 0);
    family = await startChaosFamily({ mesh, verbose, identity: withWebhooks, repeatUntilAccepted });
    for (const { name } of PODS) await addPod(name);
    await webhooks?.register();
  } catch (error) {
    await world.stop();
    throw error;
  }
  return world;
}

function notFoundIsFine(error: unknown): void {
  if (!isStatus(error, "NotFound")) throw error;
}

function specOf(ending: Ending, withWebhooks: boolean) {
  const labelled = { namespaceSelector: { matchLabels: { [LANE_LABEL]: "canary" } } };
  const match = ending === "" ? [labelled] : [labelled, { namespaceRegex: `^n.*${ending}` }];
  return {
    selector: { matchLabels: { component: APP.name } },
    configuration: { controller: { leaderElectionName: APP.name }, ...(withWebhooks ? { webhook: WEBHOOK_SERVER } : {}) },
    // These pods are processes without a workload to replace them.
    route: { onLoss: "InPlace", subRules: [{ name: "canary", match }] },
    subsets: [{ name: CANARY, labels: { version: CANARY }, routeRules: ["canary"] }],
  };
}

function virtualApp(withWebhooks: boolean): string {
  return stringify({
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "VirtualApp",
    metadata: APP,
    spec: specOf("", withWebhooks),
  });
}
