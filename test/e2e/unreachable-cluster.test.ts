// Shards of a StatefulSet share other clusters, on the real control plane: one cluster is down for a time. The clusters are servers that take
// connections, since the sidecars see no more of a cluster than that. Pods try each of them again and again, as operators do.
import { readFileSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { MESH_CLUSTERS, SHARDING_CONFIGS } from "../../src/api/resources.ts";
import { shareClusters } from "../../src/manager/sharding/cluster-shares.ts";
import { conditionsOf } from "../support/cluster-conditions.ts";
import { eventually } from "../support/eventually.ts";
import { injectedWorkload } from "../support/injected-workload.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { type PodRunner, type RunnerPod, startPodRunner } from "../support/pod-runner.ts";
import { createProbe } from "../support/probe.ts";
import { proxyReady } from "../support/proxy-launcher.ts";
import { describeWithKube } from "../support/requirements.ts";
import { familyRoot } from "../support/sharding-config.ts";

const NAMESPACE = "foo-system";
const ROOT = { namespace: NAMESPACE, name: "foo-operator" };
const CLUSTERS = ["c-1", "c-2", "c-3", "c-4"];
const SHARDS = ["foo-1-normal", "foo-2-normal"];
const WAIT_MS = 60_000;

describeWithKube("a cluster that is down", () => {
  let kube: Kube;
  let mesh: Mesh;
  let runner: PodRunner;
  const servers = new Map<string, Server>();
  const ports = new Map<string, number>();
  const trying = new Set<string>();
  let down: string;
  let isOver = false;
  let tries: Promise<void> = Promise.resolve();

  const listen = (name: string) =>
    new Promise<void>((resolve, reject) => {
      const server = createServer((socket) => void socket.on("error", () => undefined));
      servers.set(name, server);
      server.once("error", reject);
      server.listen(ports.get(name) ?? 0, "127.0.0.1", () => {
        ports.set(name, (server.address() as { port: number }).port);
        resolve();
      });
    });
  const addCluster = async (name: string) => {
    await listen(name);
    const spec = { servers: [`https://127.0.0.1:${ports.get(name)}`], drainSeconds: 1 };
    const metadata = { namespace: NAMESPACE, name };
    await mesh.apply(JSON.stringify({ apiVersion: "ctrlmesh.kruise.io/v1alpha1", kind: "MeshCluster", metadata, spec }));
  };
  const tryOnce = (egressUrl: string, port: number) =>
    new Promise<void>((resolve) => {
      const { hostname, port: at } = new URL(egressUrl);
      const socket = connect({ host: hostname, port: Number(at) });
      socket.setTimeout(2_000, () => socket.destroy());
      socket.on("error", () => undefined).once("close", () => resolve());
      socket.write(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
      socket.once("data", () => socket.destroy());
    });
  /** What the operator of a pod does, while the pod runs. */
  async function tryClusters({ isEnding, processes }: RunnerPod): Promise<void> {
    const { access, proxy } = processes;
    if (isEnding || access === undefined || proxy === undefined || !processes.isProxyReady) return;
    const { server: url, caFile, token } = access;
    const home = createProbe({ url, caPem: readFileSync(caFile, "utf8"), token });
    await home.get("/version").catch(() => undefined);
    await home.close();
    const { egressUrl } = proxyReady(proxy);
    for (const port of ports.values()) if (egressUrl !== undefined) await tryOnce(egressUrl, port);
  }
  const meshClusters = async () => (await mesh.client.list(MESH_CLUSTERS, { namespace: NAMESPACE })).items;
  const owners = async (): Promise<Readonly<Record<string, string | undefined>>> =>
    Object.fromEntries((await meshClusters()).map(({ metadata, status }) => [metadata.name, status?.owners?.[0]?.subset]));
  const counts = async () => {
    const shards = Object.values(await owners());
    return SHARDS.map((shard) => shards.filter((each) => each === shard).length);
  };
  const reachable = async (name: string) => (await conditionsOf(mesh, name)).Reachable;

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    mesh = await startMesh({ kube });
    runner = startPodRunner({ kube, client: mesh.client, namespace: NAMESPACE, manager: String(mesh.manager.ready.grpc) });
    for (const name of CLUSTERS) await addCluster(name);
    const root = familyRoot(ROOT, { statefulSet: "foo", clusterSelector: {}, resources: [["", "configmaps"]] });
    await mesh.apply(JSON.stringify(root));
    await mesh.apply(injectedWorkload({ kind: "StatefulSet", name: "foo", replicas: 2, version: "v1", hasEgress: true }));
    tries = (async () => {
      while (!isOver) {
        for (const pod of runner.pods.values()) {
          if (trying.has(pod.uid)) continue;
          trying.add(pod.uid);
          void tryClusters(pod).finally(() => trying.delete(pod.uid));
        }
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
    })();
  }, 120_000);
  afterAll(async () => {
    isOver = true;
    await tries;
    await runner?.stop();
    for (const server of servers.values()) server.close();
    await mesh?.stop();
    await kube?.stop();
  });

  it("keeps its shard, and the shard gets the next cluster in its place", async () => {
    await eventually(async () => expect(await counts()).toEqual([2, 2]), WAIT_MS);
    const before = await owners();
    // Of the shard that would not get the new cluster if all were reachable.
    const present = Object.entries(before).map(([name, owner]) => ({ name, owner }));
    const favoured = shareClusters([...present, { name: "c-5" }], SHARDS).get("c-5");
    down = CLUSTERS.find((name) => before[name] !== favoured) ?? "";
    await eventually(async () => expect(await reachable(down)).toBe("True NoFailures"), WAIT_MS);
    servers.get(down)?.close();
    await eventually(async () => expect(await reachable(down)).toBe("False Unreachable"), WAIT_MS);
    await addCluster("c-5");
    await eventually(async () => expect((await owners())["c-5"]).toBe(before[down]), WAIT_MS);
    expect(await owners()).toEqual({ ...before, "c-5": before[down] });
  }, 180_000);

  it("counts again when it is back, and then nothing moves that need not", async () => {
    const before = await owners();
    await listen(down);
    await eventually(async () => expect(await reachable(down)).toBe("True NoFailures"), WAIT_MS);
    expect(await owners()).toEqual(before); // 3 and 2
    await addCluster("c-6");
    await eventually(async () => expect(await counts()).toEqual([3, 3]), WAIT_MS);
    expect(await owners()).toMatchObject(before);
    await eventually(async () => {
      const { status } = await mesh.client.get(SHARDING_CONFIGS, ROOT);
      expect(status?.conditions?.find(({ type }) => type === "Converged")?.status).toBe("True");
    }, WAIT_MS);
  }, 180_000);
});
