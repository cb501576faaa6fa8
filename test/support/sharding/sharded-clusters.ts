// A StatefulSet whose shards divide the namespaces of home and of other clusters, for tests on real control planes. The StatefulSet
// controller makes the pods. The audit log of each cluster says who wrote where: its writers name their pods.
import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { MESH_CLUSTERS, SHARDING_CONFIGS } from "../../../src/api/resources.ts";
import { CONFIG_MAPS } from "../../../src/kube/client/resources.ts";
import { shardPlacer } from "../../../src/manager/sharding/children.ts";
import { storedPlacement } from "../../../src/manager/sharding/stored-placement.ts";
import { clusterWrites, turnsOf } from "../cluster-writer.ts";
import { createDividedCluster, type DividedCluster } from "../divided-cluster.ts";
import { eventually } from "../eventually.ts";
import { injectedWorkload } from "../injected-workload.ts";
import { startKube } from "../kube.ts";
import { type MeshPod, startMesh } from "../mesh.ts";
import { type RunnerPod, startPodRunner } from "../pod-runner.ts";
import { createProbe } from "../probe.ts";
import { proxyReady } from "../proxy-launcher.ts";
import { familyRoot } from "../sharding-config.ts";

export const NAMESPACE = "foo-system";
export const ROOT = { namespace: NAMESPACE, name: "foo-operator" };
const DRAIN_SECONDS = 2;
/** Also with kubelets that are busy. */
const SETTLE_MS = 90_000;
const LOOK_MS = 100;

/** What an operator's process needs of its pod. */
export type OperatorPod = Pick<MeshPod, "name" | "proxyUrl" | "proxyCaPem" | "token" | "egressUrl" | "kubeconfig">;
interface Work {
  stop(): Promise<unknown>;
}

export interface ShardedClustersOptions {
  /** The names of the MeshClusters, each a control plane of its own. */
  readonly clusters: readonly string[];
  /** In each cluster, and at home. Each has the ConfigMap shared. */
  readonly namespaces: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly managers?: number;
}

export type ShardedClusters = Awaited<ReturnType<typeof startShardedClusters>>;

export const shardOfPod = (pod: string) => `foo-${Number(pod.slice("foo-".length)) + 1}-normal`;

/** Starts two shards. */
export async function startShardedClusters({ clusters: names, namespaces, labels = {}, managers = 1 }: ShardedClustersOptions) {
  const [home, ...others] = await Promise.all([startKube({ controllerManager: true }), ...names.map(() => startKube())]);
  const mesh = await startMesh({ kube: home, managers });
  const clusters = new Map<string, DividedCluster>();
  for (const [at, kube] of others.entries()) clusters.set(names[at] ?? "", createDividedCluster(names[at] ?? "", kube));
  for (const namespace of namespaces) {
    await mesh.createNamespace(namespace);
    await mesh.client.create(CONFIG_MAPS, { metadata: { namespace, name: "shared" } });
  }
  for (const cluster of clusters.values()) {
    for (const namespace of namespaces) {
      await cluster.createNamespace(namespace);
      await cluster.createConfigMap(namespace, labels);
    }
    await cluster.join(mesh, DRAIN_SECONDS);
  }
  const fields = {
    statefulSet: "foo",
    clusterSelector: {},
    clustersBy: "Namespace",
    auto: { everyShardReplicas: 1, graceSeconds: 3_600, maxMovedPercentPerHour: 10_000 },
    resources: [["", "configmaps"]] as const,
  };
  await mesh.apply(JSON.stringify(familyRoot(ROOT, fields)));
  const runner = startPodRunner({ kube: home, client: mesh.client, namespace: NAMESPACE, manager: mesh.managerAddress });

  const clusterOf = (name: string): DividedCluster => {
    const cluster = clusters.get(name);
    if (cluster === undefined) throw new Error(`there is no cluster ${name}`);
    return cluster;
  };
  const root = () => mesh.client.get(SHARDING_CONFIGS, ROOT);
  const rootCondition = async (type: string) => (await root()).status?.conditions?.find((each) => each.type === type);
  const clusterStatus = async (name: string) => (await mesh.client.get(MESH_CLUSTERS, { namespace: NAMESPACE, name })).status;
  const clusterCondition = async (name: string, type: string) =>
    (await clusterStatus(name))?.conditions?.find((each) => each.type === type);
  /** The shard of a namespace by the placement in force. */
  const placed = async () => {
    const config = await root();
    const placement = storedPlacement(config);
    const { root: spec } = config.spec;
    if (placement === undefined || spec === undefined) throw new Error("there is no placement");
    return (cluster: string | undefined, namespace: string) => shardPlacer(spec, placement, cluster)(namespace);
  };
  const scale = (replicas: number) =>
    mesh.apply(injectedWorkload({ kind: "StatefulSet", name: "foo", replicas, version: "v1", hasEgress: true }));
  const untilShards = (count: number) =>
    eventually(async () => {
      const config = await root();
      expect(storedPlacement(config)?.active).toHaveLength(count);
      expect(config.status?.root?.childShardingConfigs).toHaveLength(count);
      expect(await rootCondition("Converged")).toMatchObject({ status: "True" });
    }, SETTLE_MS);

  /** The successful writes of a cluster's namespace, by its audit log. */
  const writesIn = (cluster: string, namespace: string, sinceMs: number) =>
    clusterWrites(clusterOf(cluster).kube, namespace).filter(({ receivedMs }) => receivedMs > sinceMs);
  const shards = Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`foo-${at}`, shardOfPod(`foo-${at}`)]));
  const homeWrites = (namespace: string, sinceMs: number) =>
    mesh
      .podWrites()
      .filter((write) => write.namespace === namespace && write.resource === "configmaps" && write.code < 300)
      .filter(({ receivedMs }) => receivedMs > sinceMs);
  /** The shards that wrote in the namespace, one after the other, and writes of two shards at one time. @param cluster undefined: at home */
  const turnsIn = (cluster: string | undefined, namespace: string, sinceMs: number) =>
    turnsOf(cluster === undefined ? homeWrites(namespace, sinceMs) : writesIn(cluster, namespace, sinceMs), shards);

  const stopped: (() => Promise<void>)[] = [];
  /** Runs the work in each pod from the time when its proxy is ready until the pod ends. */
  const inEachPod = (start: (pod: OperatorPod) => Promise<Work>) => {
    const works = new Map<string, Promise<Work>>();
    const ending = new Map<string, Promise<unknown>>();
    let isOver = false;
    const looking = (async () => {
      while (!isOver) {
        for (const pod of runner.pods.values()) {
          const ready = operatorPod(pod);
          const work = works.get(pod.uid);
          if (work === undefined && ready !== undefined && !pod.isEnding) works.set(pod.uid, start(ready));
          if (work !== undefined && pod.isEnding && !ending.has(pod.uid))
            ending.set(
              pod.uid,
              work.then((each) => each.stop()),
            );
        }
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      }
    })();
    stopped.push(async () => {
      isOver = true;
      await looking;
      for (const [uid, work] of works) await (ending.get(uid) ?? work.then((each) => each.stop()));
    });
  };

  await scale(2);
  await untilShards(2);
  return {
    home,
    mesh,
    runner,
    clusterOf,
    root,
    rootCondition,
    clusterStatus,
    clusterCondition,
    placed,
    scale,
    untilShards,
    writesIn,
    homeWrites,
    turnsIn,
    inEachPod,
    async stop() {
      for (const stop of stopped) await stop().catch(() => undefined);
      await runner.stop();
      await mesh.stop();
      for (const cluster of clusters.values()) await cluster.close();
      for (const kube of [home, ...others]) await kube.stop();
    },
  };
}

/** Undefined until the proxy of the pod serves. */
function operatorPod({ name, processes }: RunnerPod): OperatorPod | undefined {
  const { access, proxy, isProxyReady } = processes;
  if (access === undefined || proxy === undefined || !isProxyReady) return undefined;
  const { egressUrl = "" } = proxyReady(proxy);
  const proxyCaPem = readFileSync(access.caFile, "utf8");
  return { name, proxyUrl: access.server, proxyCaPem, token: access.token, egressUrl, kubeconfig: access.kubeconfig };
}

/** Writes to the ConfigMap shared in the namespaces of home, again and again. */
export async function startHomeWriter({ proxyUrl, proxyCaPem, token, name }: OperatorPod, namespaces: readonly string[]) {
  const probe = createProbe({ url: proxyUrl, caPem: proxyCaPem, token, keep: false });
  let isOn = true;
  const writing = (async () => {
    for (let round = 0; isOn; round++) {
      for (const namespace of namespaces) {
        const path = `/api/v1/namespaces/${namespace}/configmaps/shared`;
        if (isOn) await probe.send("PATCH", path, { data: { [name]: String(round) } }).catch(() => undefined);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  })();
  return {
    async stop() {
      isOn = false;
      await writing;
      await probe.close();
    },
  };
}
