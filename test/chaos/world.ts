// The world that the chaos is let loose on: a real control plane, three managers, a VirtualApp with two subsets, five pods with real
// proxies and an operator on controller-runtime, and namespaces with Foos. What is asked of the API server is asked until it is done.
import { setTimeout as sleep } from "node:timers/promises";
import { stringify } from "yaml";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { LEASES } from "../../src/kube/client/resources.ts";
import { isStatus } from "../../src/kube/status.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { FOOS, type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { CANARY, createLedger, type Ending, LANE_LABEL, type Ledger } from "./ledger.ts";

export const APP = { namespace: "foo-system", name: "foo-operator" } as const;
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

export interface ChaosWorld {
  readonly kube: Kube;
  readonly mesh: Mesh;
  readonly ledger: Ledger;
  /** By name, so that one made anew takes its place. */
  readonly pods: ReadonlyMap<string, MeshPod>;
  subsetOf(pod: string): string | undefined;
  bearNamespace(labelled: boolean): Promise<string>;
  relabel(namespace: string): Promise<void>;
  editRules(ending: Ending): Promise<void>;
  /** Edits one Foo, or leaves it if the API server is away. */
  editFoo(namespace: string, index: number, message: string): Promise<void>;
  /** The manager that holds the lease, as far as the API server can be asked. */
  leadingManager(): Promise<number | undefined>;
  /** Ends a pod's processes, then its object, and makes it anew. */
  replacePod(name: string): Promise<void>;
  /** Deletes a pod's object while its processes go on for a while, then makes it anew: a node that was believed dead. */
  loseNode(name: string, forMs: number): Promise<void>;
  stop(): Promise<void>;
}

export interface WorldOptions {
  readonly random: () => number;
  readonly namespaces: number;
  /** Where the control plane's folder, with its audit log, is kept; default: nowhere. */
  readonly dir?: string;
  /** Passes on what all processes say; default false. */
  readonly verbose?: boolean;
}

export async function startChaosWorld({ random, namespaces, dir, verbose = false }: WorldOptions): Promise<ChaosWorld> {
  const kube = await startKube({ controllerManager: true, ...(dir === undefined ? {} : { dir }) });
  const mesh = await startMesh({ kube, managers: MANAGERS, restarts: true, random, verbose });
  const ledger = createLedger();
  const pods = new Map<string, MeshPod>();
  const { client } = mesh;
  const stopping = new AbortController();

  /** Asks until the API server has said yes. Nothing else may run that asks for the opposite. */
  const insist = async (ask: () => Promise<unknown>): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        return void (await ask());
      } catch (error) {
        if (isStatus(error, "AlreadyExists")) return;
        await sleep(200);
      }
    }
  };
  const addPod = async (name: string) => {
    const labels = { version: PODS.find((pod) => pod.name === name)?.subset === CANARY ? CANARY : "v1" };
    pods.set(name, await mesh.addPod({ name, labels, operator: true }));
  };
  const world: ChaosWorld = {
    kube,
    mesh,
    ledger,
    pods,
    subsetOf: (name) => PODS.find((pod) => pod.name === name)?.subset,
    async bearNamespace(labelled) {
      const name = `n${String(ledger.namespaces.length).padStart(2, "0")}`;
      ledger.noteNamespace(name, labelled, Date.now());
      await insist(() => mesh.createNamespace(name, labelled ? { [LANE_LABEL]: "canary" } : {}));
      for (let index = 0; index < FOOS_EACH; index++) await insist(() => mesh.createFoo(name, `foo-${index}`, "born"));
      return name;
    },
    async relabel(namespace) {
      const labelled = !ledger.isLabelled(namespace);
      ledger.noteNamespace(namespace, labelled, Date.now());
      await insist(() => mesh.labelNamespace(namespace, { [LANE_LABEL]: labelled ? "canary" : null }));
    },
    async editRules(ending) {
      ledger.noteEnding(ending, Date.now());
      const body = { spec: specOf(ending) };
      await insist(() => client.patch(VIRTUAL_APPS, APP, { type: "merge", body }, { timeoutMs: REQUEST_MS }));
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
      await insist(async () => {
        await pods.get(name)?.remove().catch(notFoundIsFine);
        await addPod(name);
      });
    },
    async loseNode(name, forMs) {
      await insist(async () => pods.get(name)?.deleteObject().catch(notFoundIsFine));
      await sleep(forMs);
      await world.replacePod(name);
    },
    async stop() {
      stopping.abort();
      await mesh.stop();
      await kube.stop();
    },
  };
  try {
    await mesh.apply(virtualApp());
    ledger.noteEnding("", Date.now());
    for (let index = 0; index < namespaces; index++) await world.bearNamespace(index % 3 === 0);
    for (const { name } of PODS) await addPod(name);
  } catch (error) {
    await world.stop();
    throw error;
  }
  return world;
}

function notFoundIsFine(error: unknown): void {
  if (!isStatus(error, "NotFound")) throw error;
}

function specOf(ending: Ending) {
  const labelled = { namespaceSelector: { matchLabels: { [LANE_LABEL]: "canary" } } };
  const match = ending === "" ? [labelled] : [labelled, { namespaceRegex: `^n.*${ending}` }];
  return {
    selector: { matchLabels: { component: APP.name } },
    configuration: { controller: { leaderElectionName: APP.name } },
    // The pods are processes that nobody makes anew.
    route: { onLoss: "InPlace", subRules: [{ name: "canary", match }] },
    subsets: [{ name: CANARY, labels: { version: CANARY }, routeRules: ["canary"] }],
  };
}

function virtualApp(): string {
  return stringify({ apiVersion: "ctrlmesh.kruise.io/v1alpha1", kind: "VirtualApp", metadata: APP, spec: specOf("") });
}
