// The cluster of the mesh tests: the API server's objects, and what kubelets, workloads and the eviction API do with pods. Managers
// watch it; nothing in it moves by itself.

import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import type { VirtualApp } from "../../src/api/virtual-app.ts";
import type { Clock } from "../../src/base/clock.ts";
import { MeshError } from "../../src/base/errors.ts";
import type { Pod } from "../../src/kube/client/resources.ts";
import { StatusError } from "../../src/kube/status.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { createFakeKubeClient } from "../support/fake-kube-client.ts";
import { BUCKET } from "./mesh-family.ts";
import {
  appAnnotations,
  appSpec,
  ownerReferences,
  type PodLabels,
  podLabels,
  podSpec,
  podStatus,
  type Rules,
  TEAM,
} from "./mesh-objects.ts";
import { createModelProxy, type ModelProxy } from "./mesh-proxy.ts";

export const HOME = "ops";

export type Cluster = ReturnType<typeof createCluster>;

/** @param born the namespaces that there are at first; @param changed called when something that is watched has changed */
export function createCluster(born: readonly string[], clock: Clock, changed: () => void) {
  const client = createFakeKubeClient();
  const pods = new Map<string, Pod>();
  const proxies = new Map<string, ModelProxy>();
  const namespaces = new Map(born.map((name) => [name, namespaceObject(name, name, 1)]));
  /** What workloads have not made anew yet. */
  const vacancies: PodLabels[] = [];
  const wanted = new Map<string, PodLabels>();
  let appNames: readonly string[] = [];
  let count = 1;

  const faults = {
    /** The API server takes no write of the managers. */
    isWriteLost: false,
    /** No pod may be evicted. */
    isBudgetSpent: false,
  };
  client.before = ({ verb }) => {
    if (verb === "patch" && faults.isWriteLost) throw new MeshError("KUBE_UNREACHABLE", "writing: the connection is lost");
  };
  const readApp = (name: string) => client.read<VirtualApp>(VIRTUAL_APPS, { namespace: HOME, name });
  const putPod = (name: string, change: Partial<Pod> & { readonly metadata?: Partial<KubeObject["metadata"]> }) => {
    const old = pods.get(name);
    const { labels = {}, uid = `pod-${++count}`, ...kept } = old?.metadata ?? {};
    const metadata = { ...kept, name, namespace: HOME, uid, labels, ...change.metadata, resourceVersion: String(++count) };
    const rest = { spec: change.spec ?? old?.spec ?? {}, status: change.status ?? old?.status ?? {} };
    pods.set(name, { apiVersion: "v1", kind: "Pod", metadata, ...rest });
    changed();
    return uid;
  };
  const startProxy = (name: string, uid: string) => {
    let hasRun = false;
    const onState = () => {
      const serves = proxy.current !== undefined;
      hasRun ||= serves;
      if (pods.get(name)?.metadata.uid === uid) putPod(name, { status: podStatus(serves, proxy.restarts, hasRun) });
    };
    const proxy = createModelProxy({ pod: { namespace: HOME, name, uid }, clock, onState });
    proxies.set(name, proxy);
  };
  const stopProxy = (name: string) => {
    proxies.get(name)?.kill();
    proxies.delete(name);
  };

  client.createSubresource = async (_, { name }, __, body) => {
    const { deleteOptions } = body as { readonly deleteOptions: { readonly preconditions: { readonly uid: string } } };
    const pod = pods.get(name);
    if (pod === undefined) throw new StatusError("NotFound", `pods "${name}" not found`);
    if (pod.metadata.uid !== deleteOptions.preconditions.uid) throw new StatusError("Conflict", "uid in precondition");
    if (faults.isBudgetSpent) throw new StatusError("TooManyRequests", "it would violate the pod's disruption budget");
    terminate(name);
    return undefined;
  };
  client.request = async ({ path }) => {
    const of = path.split("/").at(-2);
    const isOf = (pod: { readonly subset?: string }) => ownerReferences(pod.subset ?? "")[0]?.name === of;
    const isLive = ({ metadata, status }: Pod) => metadata.deletionTimestamp === undefined && status?.phase !== "Failed";
    const there = [...pods.values()].filter((pod) => isLive(pod) && pod.metadata.ownerReferences?.[0]?.name === of);
    return { spec: { replicas: there.length + vacancies.filter(isOf).length } };
  };
  function terminate(name: string): void {
    const pod = pods.get(name);
    if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return;
    putPod(name, { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } });
    if (pod.metadata.ownerReferences !== undefined && pod.status?.phase !== "Failed") vacancies.push(wanted.get(name) ?? {});
  }

  return Object.assign(faults, {
    client,
    proxies,
    wanted,
    /** What managers watch. */
    view: {
      apps: () => appNames.flatMap((name) => readApp(name) ?? []),
      pods: () => [...pods.values()],
      namespaces: () => [...namespaces.values()],
    },
    app: readApp,
    appNames: () => appNames,
    putApp(name: string, spec: VirtualApp["spec"], annotations = readApp(name)?.metadata.annotations ?? {}) {
      const old = readApp(name);
      appNames = [...new Set([...appNames, name])];
      const metadata = { ...old?.metadata, annotations, name, namespace: HOME, generation: (old?.metadata.generation ?? 0) + 1 };
      client.put<VirtualApp>(VIRTUAL_APPS, {
        apiVersion: "ctrlmesh.kruise.io/v1alpha1",
        kind: "VirtualApp",
        ...old,
        metadata,
        spec,
      });
      changed();
    },
    setRules(name: string, rules: Rules) {
      this.putApp(name, appSpec(rules), appAnnotations(rules));
    },
    /** As kubectl does: it is there until the manager has taken its finalizer off. */
    async deleteApp(name: string) {
      if (readApp(name) === undefined) return;
      await client.delete(VIRTUAL_APPS, { namespace: HOME, name });
      changed();
    },
    /** Somebody takes the finalizer off by hand. */
    tearApp(name: string) {
      if (readApp(name) !== undefined) client.remove(VIRTUAL_APPS, { namespace: HOME, name });
      changed();
    },
    pod: (name: string) => pods.get(name),
    /** Pods at work without a proxy, which nobody keeps from anything. */
    bare: () => [...pods.keys()].filter((name) => !proxies.has(name) && pods.get(name)?.status?.phase === "Running"),
    /** The pod is made with these labels, or given them. */
    setPod(name: string, labels: PodLabels = {}) {
      const isNew = !pods.has(name);
      wanted.set(name, labels);
      const metadata = {
        labels: podLabels(labels),
        ...(isNew && labels.controlled ? { ownerReferences: ownerReferences(labels.subset ?? "") } : {}),
      };
      const uid = putPod(name, isNew ? { metadata, spec: podSpec(labels), status: podStatus(false, 0) } : { metadata });
      if (isNew && labels.injected !== null) startProxy(name, uid);
    },
    setPodStatus: (name: string, status: NonNullable<Pod["status"]>) => void putPod(name, { status }),
    /** Evicted, or deleted in order: it works on until its end, and its workload makes another one. */
    terminate,
    /** The pod is gone, and if it was not asked to end, its workload makes another one. */
    removePod(name: string) {
      terminate(name);
      stopProxy(name);
      if (pods.delete(name)) changed();
    },
    /** The workload of somebody who has gone is made smaller. */
    scaleDown(name: string) {
      stopProxy(name);
      if (pods.delete(name)) changed();
    },
    /** The pod ends for good and its object stays. */
    failPod(name: string) {
      const pod = pods.get(name);
      if (pod === undefined || pod.status?.phase === "Failed") return;
      if (pod.metadata.ownerReferences !== undefined && pod.metadata.deletionTimestamp === undefined)
        vacancies.push(wanted.get(name) ?? {});
      stopProxy(name);
      putPod(name, { status: { phase: "Failed" } });
    },
    vacancies,
    /** Workloads make what is missing, under these names as far as they are free. */
    fillVacancies(names: readonly string[]) {
      for (const labels of vacancies.splice(0)) {
        const name = names.find((each) => !pods.has(each)) ?? `r${++count}`;
        this.setPod(name, { ...labels, injected: labels.injected ?? "shop" });
      }
    },
    namespace: (name: string) => namespaces.get(name),
    teamOf: (name: string) => (name === BUCKET ? BUCKET : (namespaces.get(name)?.metadata.labels?.[TEAM] ?? "")),
    /** Born, or given to another team. */
    setNamespace(name: string, team: string) {
      namespaces.set(name, namespaceObject(name, team, ++count));
      changed();
    },
    removeNamespace(name: string) {
      if (namespaces.delete(name)) changed();
    },
  });
}

function namespaceObject(name: string, team: string, version: number): KubeObject {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, labels: { [TEAM]: team }, resourceVersion: String(version) } };
}
