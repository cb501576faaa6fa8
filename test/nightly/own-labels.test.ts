// Server-side filtering by the labels of `labelObjects`: lists and watches are exact in every encoding and form while objects and namespaces
// come, move and go; an object that has escaped its label stays hidden from nobody.
import { afterAll, beforeAll, expect, it } from "vitest";
import { SHARDING_CONFIGS } from "../../src/api/resources.ts";
import { CONFIG_MAPS, NAMESPACES } from "../../src/kube/client/resources.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { listOf } from "../support/list-of.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe, type ProbeStream } from "../support/probe.ts";
import { readMetrics } from "../support/proxy-metrics.ts";
import { randomWrites } from "../support/random-writes.ts";
import { as, PROTOBUF } from "../support/requests.ts";
import { describeWithKube } from "../support/requirements.ts";
import { seedConfigMaps } from "../support/seed-config-maps.ts";
import { type Element, type List, readWatch } from "../support/slices.ts";

const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);
const JSON_TYPE = "application/json";
const CONFIG_MAP_LIST = "/api/v1/configmaps";
const FOO_LIST = "/apis/demo.ctrlmesh.io/v1/foos";
const CONFIG = { namespace: "foo-system", name: "east" };
const OWN = ["own", "own-0", "own-1", "own-2"];
const BORN = Array.from({ length: 20 }, (_, index) => `own-born-${index}`);
const FOREIGN = Array.from({ length: 30 }, (_, index) => `theirs-${index}`);
const MOVERS = ["mover-0", "mover-1", "mover-2"];
const LISTS = [JSON_TYPE, PROTOBUF, as("Table"), as("PartialObjectMetadataList"), as("PartialObjectMetadataList", PROTOBUF)];

const config = (movers: readonly string[]) => ({
  apiVersion: "ctrlmesh.kusionstack.io/v1alpha1",
  kind: "ShardingConfig",
  metadata: CONFIG,
  spec: {
    selector: { matchLabels: { slice: "east" } },
    controller: { leaderElectionName: "foo-operator" },
    onLoss: "InPlace",
    labelObjects: true,
    limits: [
      {
        relateResources: [
          { apiGroups: [""], resources: ["configmaps"] },
          { apiGroups: ["demo.ctrlmesh.io"], resources: ["foos"] },
        ],
        selector: {
          matchExpressions: [{ key: "ctrlmesh.kusionstack.io/namespace", operator: "In", values: [...OWN, ...BORN, ...movers] }],
        },
      },
    ],
  },
});

describeWithKube(`server-side filtering by labels (SEED=${SEED})`, () => {
  let kube: Kube;
  let mesh: Mesh;
  let pod: MeshPod;
  let direct: Probe;
  let proxied: Probe;
  let movers: readonly string[] = [];

  const status = async () => (await mesh.client.get(SHARDING_CONFIGS, CONFIG)).status;
  const untilRelied = (ms = 60_000) =>
    eventually(async () => {
      const now = await status();
      expect(now?.labels).toMatchObject({ complete: ["configmaps", "foos.demo.ctrlmesh.io"] });
      expect(now?.conditions?.find(({ type }) => type === "Converged")?.status).toBe("True");
    }, ms);

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    for (const name of [...OWN, ...FOREIGN, ...MOVERS]) await mesh.createNamespace(name);
    const namespaces = [...OWN, ...FOREIGN, ...MOVERS];
    await seedConfigMaps(kube, mesh.client, { count: 200, namespaces });
    for (const name of namespaces) await mesh.createFoo(name, "foo", "message");
    await mesh.apply(JSON.stringify(config(movers)));
    pod = await mesh.addPod({ name: "foo-east", labels: { slice: "east" } });
    proxied = createProbe({ url: pod.proxyUrl, caPem: pod.proxyCaPem, token: kube.token, keep: false });
    direct = createProbe({ url: kube.server, caPem: kube.caPem, token: kube.token, keep: false });
    await untilRelied();
  }, 180_000);
  afterAll(async () => {
    await direct?.close();
    await proxied?.close();
    await mesh?.stop();
    await kube?.stop();
  });

  const byLabels = async (name = "ctrlmesh_proxy_pushdown_total") =>
    (await readMetrics(pod.healthUrl)).sum(name, { plan: "own-labels" });
  const bothLists = async (path: string, query: string, accept: string): Promise<{ slice: List; whole: List }> => {
    const slice = await listOf(proxied, `${path}?${query}`, accept);
    const selection = new URLSearchParams(query);
    selection.set("resourceVersion", slice.resourceVersion);
    selection.set("resourceVersionMatch", "Exact");
    return { slice, whole: await listOf(direct, `${path}?${selection}`, accept) };
  };
  const isOwn = ({ namespace }: Element) => namespace.startsWith("own");
  const expectSame = async () => {
    const whole = await listOf(direct, CONFIG_MAP_LIST, JSON_TYPE);
    const slice = await listOf(proxied, CONFIG_MAP_LIST, JSON_TYPE);
    const mine = whole.elements.filter((element) => isOwn(element) || movers.includes(element.namespace));
    expect(stateOf(slice.elements, [])).toEqual(stateOf(mine, []));
    return stateOf(mine, []);
  };
  const watch = (query: string, accept = JSON_TYPE) =>
    proxied.stream(`${CONFIG_MAP_LIST}?watch=1&allowWatchBookmarks=true&${query}`, { accept });

  it("makes lists that are exact in every encoding and form, and of which the proxy drops nothing", async () => {
    for (const [path, query] of [
      [CONFIG_MAP_LIST, ""],
      [CONFIG_MAP_LIST, "labelSelector=ctrlmesh.kusionstack.io%2Fnamespace%21%3Down"],
      [CONFIG_MAP_LIST, "fieldSelector=metadata.name!%3Dcm-000001"],
      [FOO_LIST, ""],
    ] as const) {
      for (const accept of path === FOO_LIST ? [JSON_TYPE, as("Table")] : LISTS) {
        const [before, dropped] = [await byLabels(), await byLabels("ctrlmesh_proxy_filtered_objects_total")];
        const { slice, whole } = await bothLists(path, query, accept);
        const what = `${path} ${query} ${accept}`;
        expect(await byLabels(), what).toBe(before + 1);
        expect(slice.elements, what).toEqual(whole.elements.filter(isOwn));
        expect(slice.frame, what).toBe(whole.frame);
        expect(slice.elements.length, what).toBeGreaterThan(0);
        expect(await byLabels("ctrlmesh_proxy_filtered_objects_total"), what).toBe(dropped);
      }
    }
  });

  it("goes on with a new manager, which lists the objects first", async () => {
    const stream = await watch(`resourceVersion=${(await listOf(proxied, CONFIG_MAP_LIST, JSON_TYPE)).resourceVersion}`);
    await mesh.killManager();
    await mesh.startManager();
    await eventually(async () => {
      const leases = mesh.manager.output().match(/route issued/g) ?? [];
      expect(leases.length).toBeGreaterThan(0);
    }, 30_000);
    await untilRelied();
    await mesh.client.create(CONFIG_MAPS, { metadata: { namespace: "own", name: "after-restart" } });
    await eventually(() => expect(namesIn(stream)).toContain("own/after-restart"));
    expect(stream.ended()).toBe(false);
    stream.close();
  });

  it("stays exact while objects and namespaces come, move and go, in lists and in watches", async () => {
    const followed: { readonly first: readonly Element[]; readonly stream: ProbeStream }[] = [];
    const before = await byLabels();
    let isRunning = true;
    const reader = async () => {
      for (let round = 0; isRunning; round++) {
        const accept = LISTS[round % LISTS.length] ?? JSON_TYPE;
        const { slice, whole } = await bothLists(CONFIG_MAP_LIST, "", accept);
        const isStable = ({ namespace }: Element) => OWN.includes(namespace);
        expect(slice.elements.filter(isStable), accept).toEqual(whole.elements.filter(isStable));
        for (const { namespace } of slice.elements) expect(/^(own|mover)/.test(namespace), namespace).toBe(true);
        if (accept === PROTOBUF)
          followed.push({ first: [], stream: await watch("sendInitialEvents=true&resourceVersionMatch=NotOlderThan", PROTOBUF) });
        if (accept === JSON_TYPE)
          followed.push({ first: slice.elements, stream: await watch(`resourceVersion=${slice.resourceVersion}`) });
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    };
    const mover = async () => {
      for (let round = 0; isRunning; round++) {
        const born = BORN[round];
        if (born !== undefined) {
          await mesh.createNamespace(born);
          await mesh.client.create(CONFIG_MAPS, { metadata: { namespace: born, name: "early" }, data: {} });
        }
        movers = MOVERS.filter((_, index) => (round + index) % 3 === 0);
        await mesh.apply(JSON.stringify(config(movers)));
        if (round % 3 === 2) await mesh.client.delete(NAMESPACES, { name: BORN[round - 2] ?? "" });
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
    };
    const work = Promise.all([reader(), mover()]);
    work.catch(() => undefined);
    const namespaces = [...OWN, ...MOVERS, ...FOREIGN.slice(0, 3)];
    await randomWrites({ client: mesh.client, namespaces, seed: SEED, forMs: 10_000, atLeast: 100 });
    isRunning = false;
    await work;
    await untilRelied();
    expect((await byLabels()) - before).toBeGreaterThan(10);
    const expected = await expectSame();
    let continued = 0;
    for (const { first, stream } of followed) {
      const has410 = () => stream.ended() || stream.bytes().includes("too old");
      await eventually(() => {
        if (!has410()) expect(stateOf(first, readWatch(stream.contentType, stream.bytes()))).toEqual(expected);
      }, 30_000);
      if (!has410()) continued++;
      stream.close();
    }
    expect([followed.length > 5, continued > 0]).toEqual([true, true]);
  });

  it("is given up when an object without its label is found, which nobody goes on missing", async () => {
    const { resourceVersion } = await listOf(proxied, CONFIG_MAP_LIST, JSON_TYPE);
    const stream = await watch(`resourceVersion=${resourceVersion}`);
    const relied = async () => (await status())?.labels?.complete;
    expect(await relied()).toContain("configmaps");
    // Past every admission, straight into etcd.
    await mesh.client.delete(CONFIG_MAPS, { namespace: "own", name: "cm-000000" }).catch(() => undefined);
    await seedConfigMaps(kube, mesh.client, { count: 1, namespaces: ["own"] });
    await eventually(() => expect(stream.ended() || namesIn(stream).includes("own/cm-000000")).toBe(true), 20_000);
    await eventually(expectSame, 20_000);
    await untilRelied();
    await expectSame();
    stream.close();
  });

  it("ends before the policies go, so that labels can be removed without a deletion that is none", async () => {
    const { resourceVersion } = await listOf(proxied, CONFIG_MAP_LIST, JSON_TYPE);
    const stream = await watch(`resourceVersion=${resourceVersion}`);
    await mesh.apply(JSON.stringify({ ...config(movers), spec: { ...config(movers).spec, labelObjects: false } }));
    await kubectl(kube.kubeconfig, [
      "wait",
      "--for=delete",
      "mutatingadmissionpolicy/ctrlmesh-labels-configmaps",
      "--timeout=30s",
    ]);
    await kubectl(kube.kubeconfig, ["label", "configmaps", "--all", "-A", "ctrlmesh.kusionstack.io/namespace-"]);
    const before = await byLabels();
    await expectSame();
    expect(await byLabels()).toBe(before);
    expect(readWatch(stream.contentType, stream.bytes()).filter(({ type }) => type === "DELETED")).toEqual([]);
    stream.close();
  });
});

function namesIn(stream: ProbeStream): string[] {
  return readWatch(stream.contentType, stream.bytes()).map(({ namespace, name }) => `${namespace}/${name}`);
}

/** The version of each object that a client knows after the list and the events. */
function stateOf(list: readonly Element[], events: readonly Element[]): ReadonlyMap<string, string> {
  const state = new Map(list.map(({ namespace, name, version }) => [`${namespace}/${name}`, version]));
  for (const { type, namespace, name, version } of events) {
    if (type === "DELETED") state.delete(`${namespace}/${name}`);
    else if (type === "ADDED" || type === "MODIFIED") state.set(`${namespace}/${name}`, version);
  }
  return new Map([...state].sort());
}
