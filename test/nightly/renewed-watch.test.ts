// Watch renewal on the real control plane. When a subset gains or loses namespaces, its informers' watches get the objects as events, and
// no informer lists again. Before each new list client-go would wait, each time twice as long.
import { afterAll, beforeAll, expect, it } from "vitest";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { FOOS, type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe, type ProbeStream } from "../support/probe.ts";
import { readMetrics } from "../support/proxy-metrics.ts";
import { describeWithKube } from "../support/requirements.ts";

const PROTOBUF = "application/vnd.kubernetes.protobuf";
const RENEWALS = "ctrlmesh_proxy_watch_renewals_total";
const MOVED = Array.from({ length: 8 }, (_, index) => `tenant-${index}`);
/** The ConfigMaps of each namespace: two of the test and one of the operator. */
const NAMES = ["a", "b", "foo-data"];
const CANARY = { "ns-type": "canary-1" };
/** Less than client-go would wait if it listed again after each move: 0.8 s, 1.6 s, 3.2 s and so on, with up to as much jitter. */
const SOON_MS = 5_000;

describeWithKube("watches during moves of namespaces between subsets", () => {
  let kube: Kube;
  let mesh: Mesh;
  const pods = {} as Record<"default" | "canary", MeshPod>;
  const probes = {} as Record<"default" | "canary", Probe>;

  const createConfigMap = (namespace: string, name: string) =>
    mesh.client.create(CONFIG_MAPS, { metadata: { namespace, name }, data: { of: `DATA-${namespace}-${name}` } });
  const watch = async (probe: Probe, path: string, accept: string): Promise<ProbeStream> => {
    const list = JSON.parse((await probe.get(path)).body.toString()) as { metadata: { resourceVersion: string } };
    const query = `watch=1&allowWatchBookmarks=true&resourceVersion=${list.metadata.resourceVersion}`;
    return probe.stream(`${path}?${query}`, { accept });
  };
  const renewals = async (pod: MeshPod, result: string) => (await readMetrics(pod.healthUrl)).sum(RENEWALS, { result });

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    await mesh.createNamespace("canary-eu");
    for (const namespace of [...MOVED, "raw", "stays"]) {
      await mesh.createNamespace(namespace);
      await mesh.createFoo(namespace, "foo", "first");
      for (const name of ["a", "b"]) await createConfigMap(namespace, name);
    }
    await mesh.apply(demoVirtualApp({ onLoss: "InPlace" }));
    pods.default = await mesh.addPod({ name: "foo-0", operator: true });
    pods.canary = await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" }, operator: true });
    for (const side of ["default", "canary"] as const)
      probes[side] = createProbe({ url: pods[side].proxyUrl, caPem: pods[side].proxyCaPem, token: kube.token });
    const reconciled = async () => expect((await mesh.foo("stays", "foo")).status?.observedGeneration).toBe(1);
    await eventually(reconciled, 30_000);
  }, 120_000);
  afterAll(async () => {
    await probes.default?.close();
    await probes.canary?.close();
    await mesh?.stop();
    await kube?.stop();
  });

  it("get the moved objects in every encoding of informers and go on, and so does a client that resumes from what it has seen", async () => {
    const partial = `${PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io`;
    const streams = await Promise.all([
      watch(probes.canary, "/api/v1/configmaps", "application/json"),
      watch(probes.canary, "/api/v1/configmaps", PROTOBUF),
      watch(probes.canary, "/api/v1/configmaps", partial),
    ]);
    const losing = await watch(probes.default, "/api/v1/configmaps", "application/json");
    const losingNames = await watch(probes.default, "/api/v1/namespaces", "application/json");
    const foos = await watch(probes.canary, "/apis/demo.ctrlmesh.io/v1/foos", "application/json");
    await mesh.labelNamespace("raw", CANARY);
    const seen = (stream: ProbeStream) => stream.bytes().toString("latin1");
    await eventually(() => {
      for (const stream of streams) expect(seen(stream).match(/ADDED/g)).toHaveLength(NAMES.length);
      expect(seen(foos)).toContain('"namespace":"raw"');
      expect(seen(losing).match(/"DELETED"/g)).toHaveLength(NAMES.length);
      expect(seen(losingNames)).toMatch(/"DELETED".*"name":"raw"/);
    }, SOON_MS);
    await createConfigMap("raw", "later");
    await createConfigMap("stays", "later");
    await eventually(() => {
      for (const stream of streams) expect(seen(stream)).toContain("later");
      expect(seen(losing)).toContain("DATA-stays-later");
    });
    expect(seen(losing)).not.toMatch(/ERROR|DATA-raw-later/);
    expect(seen(streams[0] as ProbeStream)).toContain("DATA-raw-a");
    for (const stream of [...streams, foos]) expect(seen(stream)).not.toMatch(/ERROR|DATA-stays/);
    for (const stream of [...streams, foos, losing, losingNames]) expect(stream.ended()).toBe(false);
    const versions = [...seen(streams[0] as ProbeStream).matchAll(/"resourceVersion":"(\d+)"/g)].map(([, version]) =>
      Number(version),
    );
    const resumed = `/api/v1/configmaps?watch=1&allowWatchBookmarks=true&resourceVersion=${versions.at(-1)}`;
    const again = await probes.canary.stream(resumed);
    await createConfigMap("raw", "resumed");
    await eventually(() => expect(seen(again)).toContain("DATA-raw-resumed"));
    expect(seen(again)).not.toMatch(/ERROR|DATA-raw-a/);
  });

  it("let operators reconcile many namespaces that move one after another, soon and without another list", async () => {
    const before = await renewals(pods.canary, "renewed");
    for (const namespace of MOVED) {
      await mesh.labelNamespace(namespace, CANARY);
      await eventually(async () => {
        const { status } = await mesh.foo(namespace, "foo");
        expect(status?.reconciledBy).toBe("foo-canary-0");
      }, SOON_MS);
    }
    for (const namespace of MOVED) {
      await mesh.client.patch(FOOS, { namespace, name: "foo" }, { type: "merge", body: { spec: { message: "second" } } });
    }
    await eventually(async () => {
      for (const namespace of MOVED) {
        const { data } = await mesh.client.get(CONFIG_MAPS, { namespace, name: "foo-data" });
        expect(data?.message).toBe("second");
      }
    });
    expect(await renewals(pods.canary, "renewed")).toBeGreaterThanOrEqual(before + MOVED.length);
    for (const pod of [pods.default, pods.canary]) expect(await renewals(pod, "expired")).toBe(0);
    const unexpected = mesh.podWrites().filter(({ pod, namespace }) => namespace === "stays" && pod !== "foo-0");
    expect(unexpected).toEqual([]);
    // The losing operator has not listed again either. It still reconciles the namespaces that it kept.
    await mesh.client.patch(FOOS, { namespace: "stays", name: "foo" }, { type: "merge", body: { spec: { message: "third" } } });
    await eventually(async () => {
      const { data } = await mesh.client.get(CONFIG_MAPS, { namespace: "stays", name: "foo-data" });
      expect(data?.message).toBe("third");
    }, SOON_MS);
  });
});
