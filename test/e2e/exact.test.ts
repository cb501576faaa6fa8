// The answers to a subset are the direct answers without the objects of other subsets, byte for byte. The tests compare lists, pages and
// watches in every encoding and form, during random writes in all namespaces. They decode the direct answers to find each object's owner.
import { afterAll, beforeAll, expect, it } from "vitest";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { appOfSubsets } from "../support/app-of-subsets.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { listOf } from "../support/list-of.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe, type ProbeStream } from "../support/probe.ts";
import { parseMetrics } from "../support/proxy-metrics.ts";
import { randomWrites } from "../support/random-writes.ts";
import { as, PROTOBUF } from "../support/requests.ts";
import { describeWithKube } from "../support/requirements.ts";
import { type Element, type List, readWatch } from "../support/slices.ts";

const IS_NIGHTLY = process.env.NIGHTLY === "true";
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);
const SUBSETS = ["red", "blue", ""] as const;
type Subset = (typeof SUBSETS)[number];
const RED = ["red-0", "red-1"];
// Too many namespaces to exclude by name. So only the proxy filters for red and default, while the API server filters for blue.
const BLUE = Array.from({ length: 20 }, (_, index) => `blue-${index}`);
const GREEN = ["green-0", "green-1"];
const JSON_TYPE = "application/json";
const LISTS = [
  JSON_TYPE,
  PROTOBUF,
  as("Table"),
  as("PartialObjectMetadataList"),
  as("PartialObjectMetadataList", PROTOBUF),
  `${as("Table")},${JSON_TYPE}`,
  "*/*",
];
const WATCHES = [JSON_TYPE, PROTOBUF, as("Table"), as("PartialObjectMetadata"), as("PartialObjectMetadata", PROTOBUF)];
const ALL = "/api/v1/configmaps";
const VIRTUAL_APP = appOfSubsets({
  red: { labels: { colour: "red" }, match: { namespaceRegex: "^red" } },
  blue: { labels: { colour: "blue" }, match: { namespaceRegex: "^blue" } },
});

const ownerOf = (namespace: string): Subset => (namespace.startsWith("red") ? "red" : namespace.startsWith("blue") ? "blue" : "");

describeWithKube(`answers without the objects of other subsets (SEED=${SEED})`, () => {
  let kube: Kube;
  let mesh: Mesh;
  let direct: Probe;
  const proxies = {} as Record<Subset, Probe>;

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    for (const name of [...RED, ...BLUE, ...GREEN]) await mesh.createNamespace(name);
    await mesh.apply(VIRTUAL_APP);
    for (const namespace of [...RED, "blue-0", "blue-1", "blue-19", ...GREEN]) {
      for (const name of ["a", "b", "c"])
        await mesh.client.create(CONFIG_MAPS, {
          metadata: { namespace, name },
          data: { decoy: '"items":[{"metadata":{"namespace":"red-0"}}]' },
        });
      await mesh.createFoo(namespace, "foo", "hello");
    }
    for (const subset of SUBSETS) {
      const pod = await mesh.addPod({
        name: `foo-${subset || "default"}`,
        ...(subset === "" ? {} : { labels: { colour: subset } }),
      });
      proxies[subset] = createProbe({ url: pod.proxyUrl, caPem: pod.proxyCaPem, token: kube.token, keep: false });
    }
    direct = createProbe({ url: kube.server, caPem: kube.caPem, token: kube.token, keep: false });
    // The manager's lease would change the resourceVersion of every list.
    await mesh.killManager();
  });
  afterAll(async () => {
    for (const probe of [direct, ...Object.values(proxies)]) await probe?.close();
    await mesh?.stop();
    await kube?.stop();
  });

  /** The direct and the proxied list at one resourceVersion. */
  const bothLists = (subset: Subset, path: string, accept: string): Promise<[List, List]> =>
    eventually(async () => {
      const [whole, slice] = await Promise.all([listOf(direct, path, accept), listOf(proxies[subset], path, accept)]);
      expect(slice.resourceVersion).toBe(whole.resourceVersion);
      return [whole, slice];
    });

  it.each(SUBSETS)("are exact for lists of every encoding and form: subset '%s'", async (subset) => {
    const owned = (element: Element) => ownerOf(element.namespace === "" ? element.name : element.namespace) === subset;
    const paths = [
      ALL,
      "/apis/demo.ctrlmesh.io/v1/foos",
      "/api/v1/namespaces",
      "/api/v1/namespaces/red-0/configmaps",
      "/api/v1/namespaces/green-0/configmaps",
    ];
    for (const path of [
      ...paths,
      `${ALL}?fieldSelector=metadata.name%3Da`,
      `${ALL}?resourceVersion=0`,
      `${ALL}?labelSelector=!nope`,
    ]) {
      for (const accept of LISTS) {
        if (path.includes("foos") && accept === PROTOBUF) continue; // custom resources have no protobuf
        const [whole, slice] = await bothLists(subset, path, accept);
        const expected = whole.elements.filter(owned);
        expect(slice.elements, `${path} ${accept}`).toEqual(expected);
        expect(slice.frame, `${path} ${accept}`).toBe(whole.frame);
        expect(whole.elements.length).toBeGreaterThan(0);
      }
    }
  });

  it.each(SUBSETS)("are exact for Tables with and without objects: subset '%s'", async (subset) => {
    for (const includeObject of ["Metadata", "Object"]) {
      const [whole, slice] = await bothLists(subset, `${ALL}?includeObject=${includeObject}`, as("Table"));
      expect(slice.elements).toEqual(whole.elements.filter(({ namespace }) => ownerOf(namespace) === subset));
    }
    // Rows without metadata have no namespace to filter by. So the rows for None contain metadata, as for Metadata.
    const [, none] = await bothLists(subset, `${ALL}?includeObject=None`, as("Table"));
    const [, metadata] = await bothLists(subset, `${ALL}?includeObject=Metadata`, as("Table"));
    expect(none.elements).toEqual(metadata.elements);
  });

  it.each(SUBSETS)("are exact for all pages together, without remainingItemCount: subset '%s'", async (subset) => {
    for (const accept of [JSON_TYPE, PROTOBUF, as("Table")]) {
      const [whole] = await bothLists(subset, ALL, accept);
      for (const limit of [1, 2, 7]) {
        const elements: Element[] = [];
        let token = "";
        let pages = 0;
        do {
          const page = await listOf(proxies[subset], `${ALL}?limit=${limit}&continue=${encodeURIComponent(token)}`, accept);
          expect(page.remaining).toBe(false);
          elements.push(...page.elements);
          token = page.continue;
          pages++;
        } while (token !== "");
        expect(elements).toEqual(whole.elements.filter(({ namespace }) => ownerOf(namespace) === subset));
        expect(pages).toBeGreaterThan(1);
      }
    }
    expect((await listOf(direct, `${ALL}?limit=2`, JSON_TYPE)).remaining).toBe(true);
  });

  it("are exact for watches of every encoding and form, during random writes", async () => {
    const { resourceVersion } = await listOf(direct, ALL, JSON_TYPE);
    const state = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    const paths = [
      ...WATCHES.flatMap((accept) => [
        [`${ALL}?watch=1&resourceVersion=${resourceVersion}`, accept] as const,
        [`${ALL}?watch=1&${state}`, accept] as const,
      ]),
      [`/api/v1/watch/configmaps?resourceVersion=${resourceVersion}`, JSON_TYPE] as const,
      [`${ALL}?watch=1&resourceVersion=${resourceVersion}&labelSelector=odd%3D1`, PROTOBUF] as const,
      [`${ALL}?watch=1&resourceVersion=${resourceVersion}&fieldSelector=metadata.name%3Dw0-0`, JSON_TYPE] as const,
      ["/api/v1/namespaces/red-0/configmaps?watch=1&resourceVersion=0", JSON_TYPE] as const,
      ["/api/v1/namespaces/green-0/configmaps?watch=1&resourceVersion=0", PROTOBUF] as const,
    ];
    // As in every client, each watch continues from a list of the same selection.
    for (const probe of Object.values(proxies)) {
      for (const query of ["", "?labelSelector=odd%3D1", "?fieldSelector=metadata.name%3Dw0-0"])
        await listOf(probe, `${ALL}${query}`, JSON_TYPE);
    }
    const open = (probe: Probe) => Promise.all(paths.map(([path, accept]) => probe.stream(path, { accept })));
    const [whole, ...slices] = await Promise.all([direct, ...SUBSETS.map((subset) => proxies[subset])].map(open));
    await randomWrites({
      client: mesh.client,
      namespaces: [...RED, "blue-0", "blue-19", ...GREEN],
      seed: SEED,
      forMs: IS_NIGHTLY ? 12_000 : 4_000,
      atLeast: 150,
    });
    let brokenOff = 0;
    for (const [index, subset] of SUBSETS.entries()) {
      for (const [at, [path, accept]] of paths.entries()) {
        const stream = slices[index]?.[at] as ProbeStream;
        expect([stream.status, stream.contentType], `${subset} ${path} ${accept}`).toEqual([200, whole?.[at]?.contentType]);
        await eventually(
          () => {
            const all = eventsOf(whole?.[at] as ProbeStream);
            const expected = all.filter(({ namespace, initialEnd }) => initialEnd || ownerOf(namespace) === subset);
            const seen = eventsOf(stream);
            const due = stream.ended() ? expected.slice(0, seen.length) : expected;
            expect(seen.length, `${subset} ${path} ${accept}`).toBe(due.length);
            expect(seen.map(comparable), `${subset} ${path} ${accept}`).toEqual(due.map(comparable));
          },
          { withinMs: 30_000, everyMs: 100 },
        );
        if (stream.ended()) brokenOff++;
      }
    }
    // On a busy machine the API server ends slow watches and counts them. The proxy ends none.
    const terminated = await terminatedWatches(direct);
    expect(brokenOff, `${terminated} watches were ended by the API server`).toBeLessThanOrEqual(terminated);
    expect(whole?.some((stream) => stream.ended())).toBe(false);
  });
});

async function terminatedWatches(direct: Probe): Promise<number> {
  const { body } = await direct.get("/metrics");
  return parseMetrics(body.toString()).sum("apiserver_terminated_watchers_total");
}

// The times of bookmarks vary, except for the bookmark that ends the initial events.
function eventsOf(stream: ProbeStream): Element[] {
  return readWatch(stream.contentType, stream.bytes()).filter(({ type, initialEnd }) => type !== "BOOKMARK" || initialEnd);
}

// The bookmark that ends the initial events has the resourceVersion of the watch's start, which differs between watches.
function comparable({ bytes, initialEnd, ...element }: Element): object {
  return initialEnd ? { ...element, initialEnd, version: undefined } : { ...element, bytes };
}
