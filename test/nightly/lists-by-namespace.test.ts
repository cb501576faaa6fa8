// Lists by namespace on a control plane without alpha feature gates: each answer is the direct list at the answer's own version without the
// objects of other subsets, byte for byte, in every encoding and form, while objects and namespaces come, move and go. The same for the
// initial events of watches, and for client-go's informers, which begin with these.
import { afterAll, beforeAll, expect, it } from "vitest";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { type ClientProgram, startClientProgram } from "../support/client-program.ts";
import { eventually } from "../support/eventually.ts";
import { goProgram } from "../support/go-build.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { bytesOf, decode } from "../support/kube-protobuf.ts";
import { listOf } from "../support/list-of.ts";
import { podOf } from "../support/mesh/pod-writes.ts";
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
const WATCHES = [JSON_TYPE, PROTOBUF, as("PartialObjectMetadata"), as("PartialObjectMetadata", PROTOBUF)];
const WATCH_LIST = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
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
  /** Watches that begin with a list, which kube-apiserver has by default since 1.34. */
  let hasWatchLists: boolean;

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
    const version = (await mesh.client.request({ method: "GET", path: "/version" })) as { readonly minor: string };
    hasWatchLists = Number(version.minor) >= 34;
  });
  afterAll(async () => {
    await direct?.close();
    await proxied?.close();
    await mesh?.stop();
    await kube?.stop();
  });

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

  /**
   * Opens a watch and waits for its initial events, which end with a bookmark. `end` is the ERROR event if its client has to begin again, as
   * with any watch of everything during which namespaces move.
   */
  const initialEvents = async (probe: Probe, path: string, accept: string) => {
    const stream = await probe.stream(path, { accept });
    expect(stream.status, `${path} ${accept}`).toBe(200);
    const events = () => readWatch(stream.contentType, stream.bytes());
    const isEnd = ({ type, initialEnd }: Element) => initialEnd || type === "ERROR";
    await eventually(() => expect(events().some(isEnd), `${path} ${accept}, ended: ${stream.ended()}`).toBe(true), 30_000);
    const seen = events();
    const at = seen.findIndex(isEnd);
    return { stream, objects: seen.slice(0, at), end: seen[at] as Element };
  };

  it("make the initial events of watches exact in every encoding and form, with a bookmark like the API server's", async ({
    skip,
  }) => {
    skip(!hasWatchLists, "this API server has no watch lists");
    const paths = [
      ...WATCHES.map((accept) => [`${CONFIG_MAP_LIST}?${WATCH_LIST}`, accept] as const),
      [`${CONFIG_MAP_LIST}?${WATCH_LIST}&resourceVersion=0`, PROTOBUF] as const,
      [`${CONFIG_MAP_LIST}?${WATCH_LIST}&resourceVersion=1&timeoutSeconds=60`, JSON_TYPE] as const,
      // Their sizes are known from the lists of an earlier test.
      [`${CONFIG_MAP_LIST}?${WATCH_LIST}&labelSelector=mark`, JSON_TYPE] as const,
      [`${CONFIG_MAP_LIST}?${WATCH_LIST}&fieldSelector=metadata.name!%3Dcm-000001`, JSON_TYPE] as const,
      [`${FOO_LIST}?${WATCH_LIST}`, JSON_TYPE] as const,
    ];
    for (const [path, accept] of paths) {
      const what = `${path} ${accept}`;
      const before = await byNamespace();
      const slice = await initialEvents(proxied, path, accept);
      expect(await byNamespace(), what).toBe(before + 1);
      const whole = await initialEvents(direct, path, accept);
      expect(slice.stream.contentType, what).toBe(whole.stream.contentType);
      expect(slice.objects, what).toEqual(whole.objects.filter(isOwn));
      expect(slice.objects.length, what).toBeGreaterThan(0);
      const contentType = slice.stream.contentType;
      expect(describeObject(contentType, slice.end), what).toEqual(describeObject(contentType, whole.end));
      for (const { stream } of [slice, whole]) stream.close();
    }
  });

  it("end no initial events with a bookmark for a client that takes none", async ({ skip }) => {
    skip(!hasWatchLists, "this API server has no watch lists");
    const stream = await proxied.stream(`${CONFIG_MAP_LIST}?${WATCH_LIST.replace("&allowWatchBookmarks=true", "")}`);
    const { objects } = await initialEvents(direct, `${CONFIG_MAP_LIST}?${WATCH_LIST}`, JSON_TYPE);
    await eventually(() => expect(readWatch(stream.contentType, stream.bytes())).toEqual(objects.filter(isOwn)), 30_000);
    stream.close();
  });

  it("are not for Tables, nor for what the API server refuses", async ({ skip }) => {
    skip(!hasWatchLists, "this API server has no watch lists");
    const before = await byNamespace();
    const table = await initialEvents(proxied, `${CONFIG_MAP_LIST}?${WATCH_LIST}`, as("Table"));
    expect(table.objects.every(isOwn)).toBe(true);
    table.stream.close();
    for (const query of ["sendInitialEvents=true", "sendInitialEvents=true&resourceVersionMatch=Exact", "resourceVersion=abc"]) {
      const [slice, whole] = await Promise.all([proxied, direct].map((each) => each.get(`${CONFIG_MAP_LIST}?watch=1&${query}`)));
      expect([slice?.status, String(slice?.body)], query).toEqual([whole?.status, String(whole?.body)]);
      expect(slice?.status, query).toBeGreaterThan(399);
    }
    expect(await byNamespace()).toBe(before);
  });

  /** Runs the readers while objects and namespaces come, move and go. */
  const whileAllMoves = async (
    readers: readonly ((isRunning: () => boolean) => Promise<void>)[],
    { forMs, moveEveryMs }: { readonly forMs: number; readonly moveEveryMs: number },
  ) => {
    let isRunning = true;
    const mover = async () => {
      for (let round = 0; isRunning; round++) {
        const born = `own-born-${births++}`;
        await mesh.createNamespace(born);
        await mesh.client.create(CONFIG_MAPS, { metadata: { namespace: born, name: "early" }, data: {} });
        await mesh.labelNamespace(MOVERS[round % MOVERS.length] ?? "", { mine: round % 2 === 0 ? "yes" : "no" });
        await new Promise((resolve) => setTimeout(resolve, moveEveryMs));
      }
    };
    const work = Promise.all([mover(), ...readers.map((reader) => reader(() => isRunning))]);
    work.catch(() => undefined);
    const namespaces = [...OWN, EMPTY, ...MOVERS, ...FOREIGN.slice(0, 3)];
    await randomWrites({ client: mesh.client, namespaces, seed: SEED, forMs, atLeast: 100 });
    isRunning = false;
    await work;
  };
  let births = 0;
  /** The objects of the subset once all moves are over, with their versions: by the rules of the VirtualApp, not by what the proxy says. */
  const expectedState = async (path: string) => {
    const { body } = await direct.get("/api/v1/namespaces");
    const { items } = JSON.parse(body.toString()) as {
      items: { metadata: { name: string; labels?: Record<string, string> } }[];
    };
    const isMine = ({ metadata: { name, labels } }: (typeof items)[number]) => name.startsWith("own") || labels?.mine === "yes";
    const mine = new Set(items.filter(isMine).map(({ metadata }) => metadata.name));
    const whole = await listOf(direct, path, JSON_TYPE);
    return stateOf(
      whole.elements.filter(({ namespace }) => mine.has(namespace)),
      [],
    );
  };
  const isStable = ({ namespace }: Element) => OWN.includes(namespace);

  it("bring client-go's informers to the store of the direct ones, without a watch of everything", async () => {
    const command = await goProgram("test/operators/go-retry");
    const args = ["--with=informers", "--informers=15", "--informer-namespace=own"];
    const programs: ClientProgram[] = [];
    const before = await byNamespace();
    const auditedBefore = kube.audit().length;
    const starter = async () => {
      for (const { name, kubeconfig } of [
        { name: "proxied", kubeconfig: pod.kubeconfig },
        { ...kube, name: "direct" },
      ])
        programs.push(await startClientProgram({ name, command, args, env: { KUBECONFIG: kubeconfig } }));
    };
    try {
      // A list for each of many own namespaces would not be worth it.
      await whileAllMoves([starter], { forMs: 8_000, moveEveryMs: 1_500 });
      const [slice, whole] = programs as [ClientProgram, ClientProgram];
      for (let informer = 0; informer < 15; informer++) {
        const isFoos = informer % 5 === 1 || informer % 5 === 4;
        const expected = [...(await expectedState(isFoos ? FOO_LIST : CONFIG_MAP_LIST))];
        const mine = new Set(expected.map(([key]) => key));
        const isIn = ([key]: readonly [string, unknown]) => informer % 5 !== 3 || key.startsWith("own/");
        await eventually(() => {
          const store = storeOf(slice, informer);
          expect(store, slice.output().slice(-2_000)).toEqual(expected.filter(isIn));
          expect(store).toEqual(storeOf(whole, informer).filter(([key]) => mine.has(key)));
        }, 30_000);
      }
      const watchLists = kube
        .audit()
        .slice(auditedBefore)
        .filter((event) => podOf(event) === pod.name && event.stage === "ResponseStarted")
        .flatMap(({ requestURI = "" }) => (requestURI.includes("sendInitialEvents=true") ? [requestURI] : []));
      const isEverything = (uri: string) => !uri.includes("/namespaces/") && !uri.includes("labelSelector");
      expect(watchLists.filter(isEverything)).toEqual([]);
      // Those of one namespace, and those with a selector, whose effect is not known.
      expect(watchLists.length).toBeGreaterThanOrEqual(6);
      // Three shapes, three times each.
      expect((await byNamespace()) - before).toBeGreaterThanOrEqual(9);
    } finally {
      for (const program of programs) await program.stop();
    }
  });

  it("stay exact while objects and namespaces come, move and go, and watches from them lead to the subset's objects", async ({
    skip,
  }) => {
    skip(!hasWatchLists, "this API server has no watch lists");
    const followed: { readonly first: readonly Element[]; readonly stream: ProbeStream }[] = [];
    const before = await byNamespace();
    let [lists, watches] = [0, 0];
    const lister = async (isRunning: () => boolean) => {
      for (; isRunning(); lists++) {
        const accept = LISTS[lists % LISTS.length] ?? JSON_TYPE;
        const { slice, whole } = await bothLists(CONFIG_MAP_LIST, "limit=500&resourceVersion=0", accept);
        expect(slice.elements.filter(isStable), accept).toEqual(whole.elements.filter(isStable));
        expect(slice.frame, accept).toBe(whole.frame);
        const seen = new Set(whole.elements.map(({ bytes }) => bytes));
        for (const element of slice.elements) {
          expect(/^(own|mover)/.test(element.namespace), element.namespace).toBe(true);
          expect(seen.has(element.bytes), `${element.namespace}/${element.name}`).toBe(true);
        }
        if (accept !== JSON_TYPE) continue;
        const query = `watch=1&allowWatchBookmarks=true&resourceVersion=${slice.resourceVersion}`;
        followed.push({ first: slice.elements, stream: await proxied.stream(`${CONFIG_MAP_LIST}?${query}`) });
      }
    };
    const watcher = async (isRunning: () => boolean) => {
      for (; isRunning(); watches++) {
        const accept = WATCHES[watches % WATCHES.length] ?? JSON_TYPE;
        const { stream, objects, end } = await initialEvents(proxied, `${CONFIG_MAP_LIST}?${WATCH_LIST}`, accept);
        if (end.type === "ERROR") continue;
        const exact = `${CONFIG_MAP_LIST}?resourceVersion=${end.version}&resourceVersionMatch=Exact`;
        const whole = await listOf(direct, exact, JSON_TYPE);
        const versions = ({ namespace, name, version }: Element) => `${namespace}/${name} ${version}`;
        expect(objects.filter(isStable).map(versions), accept).toEqual(whole.elements.filter(isStable).map(versions));
        const seen = new Set(whole.elements.map(versions));
        for (const element of objects) {
          expect(/^(own|mover)/.test(element.namespace), element.namespace).toBe(true);
          expect(seen.has(versions(element)), versions(element)).toBe(true);
        }
        followed.push({ first: [], stream });
      }
    };
    await whileAllMoves([lister, lister, watcher], { forMs: 12_000, moveEveryMs: 300 });
    const reads = lists + watches;
    expect((await byNamespace()) - before, `of ${lists} lists and ${watches} watches`).toBeGreaterThan(reads / 2);
    expect([lists > 0, watches >= WATCHES.length]).toEqual([true, true]);
    const expected = await expectedState(CONFIG_MAP_LIST);
    const continued = { lists: 0, watches: 0 };
    for (const { first, stream } of followed) {
      // The client would list again.
      if (stream.ended()) continue;
      continued[first.length > 0 ? "lists" : "watches"]++;
      await eventually(() => expect(stateOf(first, readWatch(stream.contentType, stream.bytes()))).toEqual(expected), 30_000);
      stream.close();
    }
    expect([continued.lists > 0, continued.watches > 0], JSON.stringify(continued)).toEqual([true, true]);
  });
});

/** What an informer knows: the version of each object. */
function storeOf({ sightings }: ClientProgram, informer: number): (readonly [string, string])[] {
  const store = new Map<string, string>();
  for (const { resource, type, key, version = "" } of sightings) {
    if (resource !== `informer-${informer}`) continue;
    if (type === "DELETED") store.delete(key);
    else store.set(key, version);
  }
  return [...store].sort();
}

/** An object without its version: as a value, or in protobuf the type of its envelope. */
function describeObject(contentType: string, { bytes, version, ...element }: Element): unknown {
  if (!contentType.includes("protobuf")) return JSON.parse(bytes.replace(`"${version}"`, '"VERSION"'));
  return { ...element, type: bytesOf(decode(Buffer.from(bytes, "latin1").subarray(4)), 1)?.toString("latin1") };
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
