// The world of the mesh tests: the API server's objects as stores, the manager's real code without gRPC, and model proxies.
// Nothing happens by itself: a script says when the manager looks, when messages arrive and what is lost. Invariant: at every
// step at most one subset holds an object of a resource in a namespace, whatever the script does.
import type { VirtualApp } from "../../src/api/virtual-app.ts";
import type { VirtualAppStatus } from "../../src/api/virtual-app-status.ts";
import { isMeshError, MeshError } from "../../src/base/errors.ts";
import { silentLogger } from "../../src/base/log.ts";
import type { Pod } from "../../src/kube/client/resources.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { createAdmission } from "../../src/manager/admission.ts";
import { createVirtualAppReconciler } from "../../src/manager/controllers/virtual-app/reconciler.ts";
import { VIRTUAL_APPS } from "../../src/manager/resources.ts";
import { createProxyRegistry } from "../../src/manager/snapshot-server/proxy-registry.ts";
import { createStore } from "../../src/runtime/store.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createFakeKubeClient } from "../support/fake-kube-client.ts";
import { appSpec, labelsFor, type PodLabels, podLabels, podSpec, podStatus, type Rules } from "./mesh-objects.ts";
import { createModelProxy, type ModelProxy } from "./mesh-proxy.ts";

export const NAMESPACES = ["a", "b", "c"];
export const RESOURCES = ["configmaps", "pods"];
export const SHOP = "shop";
const UNHEARD_OF = "unheard-of";
const HOME = "ops";
const log = silentLogger();

export type MeshWorld = ReturnType<typeof createMeshWorld>;

/** @param born the namespaces that there are at first */
export function createMeshWorld(born: readonly string[] = NAMESPACES) {
  const fail = (error: unknown) => {
    throw error;
  };
  const apps = createStore<VirtualApp>(fail);
  const pods = createStore<Pod>(fail);
  const namespaces = createStore<KubeObject>(fail);
  const client = createFakeKubeClient();
  const clock = createFakeClock();
  const proxies = new Map<string, ModelProxy>();
  const events: string[] = [];
  let appNames: readonly string[] = [];
  let uids = 0;
  let versions = 0;

  const world = {
    proxies,
    /** The reasons of the Kubernetes Events so far. */
    events,
    /** The API server takes no status. */
    statusIsLost: false,
    /** The manager does not hear of changes of VirtualApps, not even its own. */
    watchIsLate: false,
  };
  client.before = ({ verb }) => {
    if (verb === "patch" && world.statusIsLost) throw new MeshError("KUBE_UNREACHABLE", "writing status: the connection is lost");
  };

  const startManager = () => {
    const registry = createProxyRegistry({ log });
    const admit = createAdmission({ pods, apps, leaderElsewhere: () => undefined });
    const recorder = { event: (_: KubeObject, __: string, reason: string) => void events.push(reason) };
    const reconciler = createVirtualAppReconciler({ client, apps, pods, namespaces, registry, events: recorder, clock, log });
    return { registry, admit, reconciler };
  };
  let manager = startManager();
  apps.replace([]);
  pods.replace([]);
  namespaces.replace(born.map(namespaceObject));
  pods.onChange(({ type, object }) => {
    if (type === "deleted") manager.registry.forget(`${HOME}/${object.metadata.name}`); // as in add.ts
  });

  /** The manager's watch catches up. */
  const watchApps = () => {
    if (world.watchIsLate) return;
    apps.replace(appNames.flatMap((name) => client.read<VirtualApp>(VIRTUAL_APPS, { namespace: HOME, name }) ?? []));
  };
  const putApp = (name: string, spec: VirtualApp["spec"]) => {
    const old = client.read<VirtualApp>(VIRTUAL_APPS, { namespace: HOME, name });
    appNames = [...new Set([...appNames, name])];
    client.put<VirtualApp>(VIRTUAL_APPS, {
      apiVersion: "ctrlmesh.kruise.io/v1alpha1",
      kind: "VirtualApp",
      ...old,
      metadata: { ...old?.metadata, name, namespace: HOME, generation: (old?.metadata.generation ?? 0) + 1 },
      spec,
    });
    watchApps();
  };
  const putPod = (name: string, change: Partial<Pod> & { readonly labels?: Readonly<Record<string, string>> }) => {
    const old = pods.get(name, HOME);
    const uid = old?.metadata.uid ?? `pod-${++uids}`;
    const labels = change.labels ?? old?.metadata.labels ?? {};
    const metadata = { name, namespace: HOME, uid, labels, resourceVersion: String(++versions) };
    const spec = change.spec ?? old?.spec ?? {};
    pods.upsert({ apiVersion: "v1", kind: "Pod", metadata, spec, status: change.status ?? old?.status ?? {} });
    return uid;
  };
  const startProxy = (name: string, uid: string) => {
    const proxy = createModelProxy({
      pod: { namespace: HOME, name, uid },
      manager: () => manager,
      clock,
      onState: () => {
        const isPodThere = pods.get(name, HOME)?.metadata.uid === uid;
        if (isPodThere) putPod(name, { status: podStatus(proxy.current !== undefined, proxy.restarts) });
      },
    });
    proxies.set(name, proxy);
  };

  return Object.assign(world, {
    watchApps,
    setApp: (rules: Rules, name = SHOP) => putApp(name, appSpec(rules)),
    /** The spec becomes one that the manager refuses. */
    breakApp(name = SHOP) {
      const spec = client.read<VirtualApp>(VIRTUAL_APPS, { namespace: HOME, name })?.spec;
      if (spec !== undefined)
        putApp(name, { ...spec, subsets: [{ name: "odd", labels: { odd: "yes" }, routeRules: ["missing"] }] });
    },
    hasApp: (name = SHOP) => appNames.includes(name),
    deleteApp(name = SHOP) {
      if (!appNames.includes(name)) return;
      appNames = appNames.filter((other) => other !== name);
      client.remove(VIRTUAL_APPS, { namespace: HOME, name });
      watchApps();
    },
    hasPod: (name: string) => pods.get(name, HOME) !== undefined,
    /** The pod is made with these labels, or given them. */
    setPod(name: string, labels: PodLabels = {}) {
      const isNew = pods.get(name, HOME) === undefined;
      const status = podStatus(false, 0);
      const uid = putPod(name, { labels: podLabels(labels), ...(isNew ? { spec: podSpec(labels), status } : {}) });
      if (isNew && labels.injected !== null) startProxy(name, uid);
    },
    setPodStatus: (name: string, status: NonNullable<Pod["status"]>) => void putPod(name, { status }),
    deletePod(name: string) {
      const pod = pods.get(name, HOME);
      proxies.get(name)?.kill();
      proxies.delete(name);
      if (pod !== undefined) pods.remove(pod);
    },
    /** The pod ends for good and its object stays. */
    evictPod(name: string) {
      if (pods.get(name, HOME) === undefined) return;
      proxies.get(name)?.kill();
      proxies.delete(name);
      putPod(name, { status: { phase: "Failed" } });
    },
    addNamespace: (name: string) => namespaces.upsert(namespaceObject(name)),
    hasNamespace: (name: string) => namespaces.get(name) !== undefined,
    /** @param lingers the streams of the old manager stay until a proxy hangs up; it answers on them and decides nothing new */
    restartManager(lingers = false) {
      // A proxy without a snapshot has no operator yet, and waits for one that leads.
      for (const proxy of proxies.values()) if (!lingers || proxy.current === undefined) proxy.cut();
      manager = startManager();
    },
    async reconcile(name = SHOP) {
      try {
        await manager.reconciler.reconcile({ namespace: HOME, name }, new AbortController().signal);
      } catch (error) {
        if (!isMeshError(error, "KUBE_UNREACHABLE")) throw error;
      }
      watchApps();
    },
    status: (name = SHOP): VirtualAppStatus | undefined =>
      client.read<VirtualApp>(VIRTUAL_APPS, { namespace: HOME, name })?.status,
    proxy(name: string): ModelProxy {
      const proxy = proxies.get(name);
      if (proxy === undefined) throw new Error(`there is no proxy ${name}`);
      return proxy;
    },
    /** Which subsets may act on objects with these labels in the namespace, with the pods by which they do. */
    holders(namespace: string, resource = "configmaps", labels: Readonly<Record<string, string>> = {}): Map<string, string[]> {
      const found = new Map<string, string[]>();
      for (const proxy of proxies.values()) {
        for (const subset of proxy.holds(namespace, resource, labels).keys())
          found.set(subset, [...(found.get(subset) ?? []), proxy.name]);
      }
      return found;
    },
    /** @throws if two subsets hold the same object of a resource in a namespace, and do not both share it */
    expectOneOwner(where: string) {
      for (const namespace of [...NAMESPACES, UNHEARD_OF]) {
        for (const resource of RESOURCES) {
          for (const labels of labelsFor(resource)) {
            const rights = [...proxies.values()].flatMap((proxy) => [...proxy.holds(namespace, resource, labels)]);
            const alone = rights.find(([, right]) => right === "alone")?.[0];
            if (alone === undefined || rights.every(([subset]) => subset === alone)) continue;
            const what = `${resource} ${JSON.stringify(labels)} in ${namespace}`;
            throw new Error(`two owners of ${what} after ${where}: ${textOf(this.holders(namespace, resource, labels))}`);
          }
        }
      }
    },
    /** All messages of the proxy arrive, in both directions. */
    async exchange(name: string) {
      for (let proxy = proxies.get(name); proxy?.isBusy; ) {
        proxy.answer();
        await proxy.deliver();
      }
    },
    /** Nothing goes wrong for a while: writes end, streams open, everything arrives, the manager looks at every app. */
    async settle(rounds = 12) {
      for (let round = 0; round < rounds; round++) {
        for (const proxy of proxies.values()) {
          await proxy.endWrites();
          if (proxy.isAstray) proxy.hangUp();
          proxy.connect();
          await this.exchange(proxy.name);
        }
        for (const name of appNames) await this.reconcile(name);
        for (const proxy of proxies.values()) await this.exchange(proxy.name);
        this.expectOneOwner("a quiet round");
      }
    },
  });
}

function namespaceObject(name: string): KubeObject {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, labels: {}, resourceVersion: "1" } };
}

function textOf(holders: ReadonlyMap<string, readonly string[]>): string {
  return [...holders].map(([subset, names]) => `"${subset}" by ${names.join(" and ")}`).join(", ");
}
