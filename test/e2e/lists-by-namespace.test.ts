// Lists by namespace on a control plane without alpha feature gates: each answer is the direct list at the answer's own version without the
// objects of other subsets, byte for byte, in every encoding and form, while objects and namespaces come, move and go.
import { afterAll, beforeAll, expect, it } from "vitest";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe, type ProbeStream } from "../support/probe.ts";
import { readMetrics } from "../support/proxy-metrics.ts";
import { randomWrites } from "../support/random-writes.ts";
import { as, PROTOBUF } from "../support/requests.ts";
import { describeWithKube } from "../support/requirements.ts";
import { seedConfigMaps } from "../support/seed-config-maps.ts";
import { type Element, type List, readList, readWatch } from "../support/slices.ts";

const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);
const JSON_TYPE = "application/json";
const CONFIG_MAP_LIST = "/api/v1/configmaps";
const FOO_LIST = "/apis/demo.ctrlmesh.io/v1/foos";
/** The slash behind a namespace in the API server's keys sorts after the hyphen. */
const OWN = ["own", "own-0", "own-1", "own-2"];
const EMPTY = "own-empty";
const FOREIGN = Array.from({ length: 30 }, (_, index) => `theirs-${index}`);
const MOVERS = ["mover-0", "mover-1", "mover-2"];
const LISTS = [
  JSON_TYPE,
  PROTOBUF,
  as("Table"),
  as("PartialObjectMetadataList"),
  as("PartialObjectMetadataList", PROTOBUF),
  `${as("Table")},${JSON_TYPE}`,
];
const VIRTUAL_APP = `
apiVersion: ctrlmesh.kruise.io/v1alpha1
kind: VirtualApp
metadata: {name: foo-operator, namespace: foo-system}
spec:
  selector: {matchLabels: {component: foo-operator}}
  configuration: {controller: {leaderElectionName: foo-operator}}
  route:
    onLoss: InPlace
    subRules:
      - {name: by-name, match: [{namespaceRegex: ^own}]}
      - {name: by-label, match: [{namespaceSelector: {matchLabels: {mine: "yes"}}}]}
  subsets:
    - {name: own, labels: {slice: own}, routeRules: [by-name, by-label]}
`;

describeWithKube(`lists by namespace (SEED=${SEED})`, () => {
  let kube: Kube;
  let mesh: Mesh;
  let pod: MeshPod;
  let direct: Probe;
  let proxied: Probe;

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    for (const name of [...OWN, EMPTY, ...FOREIGN, ...MOVERS]) await mesh.createNamespace(name);
    await mesh.apply(VIRTUAL_APP);
    const namespaces = [...OWN, ...FOREIGN, ...MOVERS];
    await seedConfigMaps(kube, mesh.client, { count: 4_000, namespaces });
    const message = "m".repeat(3_000);
    for (let index = 0; index < 600; index += 20)
      await Promise.all(
        Array.from({ length: 20 }, (_, offset) =>
          mesh.createFoo(namespaces[(index + offset) % namespaces.length] ?? "own", `foo-${index + offset}`, message),
        ),
      );
    pod = await mesh.addPod({ name: "foo-own", labels: { slice: "own" } });
    proxied = createProbe({ url: pod.proxyUrl, caPem: pod.proxyCaPem, token: kube.token, keep: false });
    direct = createProbe({ url: kube.server, caPem: kube.caPem, token: kube.token, keep: false });
  });
  afterAll(async () => {
    await direct?.close();
    await proxied?.close();
    await mesh?.stop();
    await kube?.stop();
  });

  const listOf = async (probe: Probe, path: string, accept: string): Promise<List> => {
    const { status, headers, body } = await probe.get(path, { accept });
    expect(status, `${path} ${accept}`).toBe(200);
    return readList(String(headers["content-type"]), body);
  };
  const byNamespace = async () =>
    (await readMetrics(pod.healthUrl)).sum("ctrlmesh_proxy_pushdown_total", { plan: "by-namespace" });
  /** The answer, and the direct answer at its version. The query may not name a version. */
  const bothLists = async (path: string, query: string, accept: string): Promise<{ slice: List; whole: List }> => {
    const slice = await listOf(proxied, `${path}?${query}`, accept);
    const selection = new URLSearchParams(query);
    for (const name of ["resourceVersionMatch", "limit"]) selection.delete(name);
    selection.set("resourceVersion", slice.resourceVersion);
    selection.set("resourceVersionMatch", "Exact");
    return { slice, whole: await listOf(direct, `${path}?${selection}`, accept) };
  };
  const isOwn = ({ namespace }: Element) => namespace.startsWith("own");
  const expectExact = async (path: string, query: string, accept: string) => {
    const before = await byNamespace();
    const { slice, whole } = await bothLists(path, query, accept);
    const what = `${path} ${query} ${accept}`;
    expect(await byNamespace(), what).toBe(before + 1);
    expect(slice.elements, what).toEqual(whole.elements.filter(isOwn));
    expect(slice.frame, what).toBe(whole.frame);
    expect(slice.elements.length, what).toBeGreaterThan(0);
  };

  it("are exact in every encoding and form, of built-in and custom kinds", async () => {
    for (const accept of LISTS) await expectExact(CONFIG_MAP_LIST, "", accept);
    await expectExact(FOO_LIST, "", JSON_TYPE);
    await expectExact(FOO_LIST, "includeObject=Object", as("Table"));
    await expectExact(CONFIG_MAP_LIST, "includeObject=Object", as("Table"));
    await expectExact(CONFIG_MAP_LIST, "includeObject=Metadata", as("Table"));
  });

  it("are exact for the versions and limits of clients", async () => {
    const { resourceVersion } = await listOf(direct, `${CONFIG_MAP_LIST}?limit=1`, JSON_TYPE);
    for (const query of [
      "limit=500",
      "resourceVersion=0&limit=500",
      `resourceVersion=${resourceVersion}`,
      `resourceVersion=${resourceVersion}&resourceVersionMatch=NotOlderThan`,
      `resourceVersion=${resourceVersion}&resourceVersionMatch=Exact`,
    ]) {
      await expectExact(CONFIG_MAP_LIST, query, JSON_TYPE);
      await expectExact(CONFIG_MAP_LIST, query, PROTOBUF);
    }
    const exact = `${CONFIG_MAP_LIST}?resourceVersion=${resourceVersion}&resourceVersionMatch=Exact`;
    expect((await listOf(proxied, exact, JSON_TYPE)).resourceVersion).toBe(resourceVersion);
  });

  it("are exact with the selectors of clients, once one list has shown that they are worth it", async () => {
    for (const query of ["labelSelector=mark", "fieldSelector=metadata.name!%3Dcm-000001"]) {
      const before = await byNamespace();
      const { slice, whole } = await bothLists(CONFIG_MAP_LIST, query, JSON_TYPE);
      expect(slice.elements).toEqual(whole.elements.filter(isOwn));
      expect(await byNamespace()).toBe(before);
      await expectExact(CONFIG_MAP_LIST, query, JSON_TYPE);
    }
  });

  it("stay exact while objects and namespaces come, move and go, and watches from them lead to the subset's objects", async () => {
    const followed: { readonly first: List; readonly stream: ProbeStream }[] = [];
    const before = await byNamespace();
    let isRunning = true;
    let lists = 0;
    const reader = async () => {
      for (; isRunning; lists++) {
        const accept = LISTS[lists % LISTS.length] ?? JSON_TYPE;
        const { slice, whole } = await bothLists(CONFIG_MAP_LIST, "limit=500&resourceVersion=0", accept);
        const isStable = ({ namespace }: Element) => OWN.includes(namespace);
        expect(slice.elements.filter(isStable), accept).toEqual(whole.elements.filter(isStable));
        expect(slice.frame, accept).toBe(whole.frame);
        const seen = new Set(whole.elements.map(({ bytes }) => bytes));
        for (const element of slice.elements) {
          expect(/^(own|mover)/.test(element.namespace), element.namespace).toBe(true);
          expect(seen.has(element.bytes), `${element.namespace}/${element.name}`).toBe(true);
        }
        if (accept !== JSON_TYPE) continue;
        const query = `watch=1&allowWatchBookmarks=true&resourceVersion=${slice.resourceVersion}`;
        followed.push({ first: slice, stream: await proxied.stream(`${CONFIG_MAP_LIST}?${query}`) });
      }
    };
    const mover = async () => {
      for (let round = 0; isRunning; round++) {
        const born = `own-born-${round}`;
        await mesh.createNamespace(born);
        await mesh.client.create(CONFIG_MAPS, { metadata: { namespace: born, name: "early" }, data: {} });
        await mesh.labelNamespace(MOVERS[round % MOVERS.length] ?? "", { mine: round % 2 === 0 ? "yes" : "no" });
        await new Promise((resolve) => setTimeout(resolve, 300));
      }
    };
    const work = Promise.all([reader(), reader(), mover()]);
    work.catch(() => undefined);
    const namespaces = [...OWN, EMPTY, ...MOVERS, ...FOREIGN.slice(0, 3)];
    await randomWrites({ client: mesh.client, namespaces, seed: SEED, forMs: 12_000, atLeast: 100 });
    isRunning = false;
    await work;
    expect((await byNamespace()) - before, `of ${lists} lists`).toBeGreaterThan(lists / 2);
    expect(followed.length).toBeGreaterThan(0);
    const mine = new Set((await listOf(proxied, "/api/v1/namespaces", JSON_TYPE)).elements.map(({ name }) => name));
    const whole = await listOf(direct, CONFIG_MAP_LIST, JSON_TYPE);
    const expected = stateOf(
      whole.elements.filter(({ namespace }) => mine.has(namespace)),
      [],
    );
    let continued = 0;
    for (const { first, stream } of followed) {
      // The client would list again.
      if (stream.ended()) continue;
      continued++;
      await eventually(
        () => expect(stateOf(first.elements, readWatch(stream.contentType, stream.bytes()))).toEqual(expected),
        30_000,
      );
    }
    expect(continued).toBeGreaterThan(0);
  });
});

/** The version of each object that a client knows after the list and the events. */
function stateOf(list: readonly Element[], events: readonly Element[]): ReadonlyMap<string, string> {
  const state = new Map(list.map(({ namespace, name, version }) => [`${namespace}/${name}`, version]));
  for (const { type, namespace, name, version } of events) {
    if (type === "DELETED") state.delete(`${namespace}/${name}`);
    else if (type === "ADDED" || type === "MODIFIED") state.set(`${namespace}/${name}`, version);
  }
  return new Map([...state].sort());
}
