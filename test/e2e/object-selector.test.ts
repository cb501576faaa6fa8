// objectSelector rules on the real control plane: a label partitions Foos and config maps between two subsets, in every namespace.
// The tests check the API server's objects, the answers through each subset's proxy, and the events of watches.
import { afterAll, beforeAll, expect, it } from "vitest";
import { stringify } from "yaml";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { formatTerms, type LabelTerm, matchesTerms } from "../../src/kube/label-selector.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { FOOS, type Mesh, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe, type ProbeStream } from "../support/probe.ts";
import { describeWithKube } from "../support/requirements.ts";

const PROTOBUF = "application/vnd.kubernetes.protobuf";
const JSON_TYPE = "application/json";
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const APPLY = "application/apply-patch+yaml";
const FOO_PATH = "/apis/demo.ctrlmesh.io/v1";
const MAP_PATH = "/api/v1";

const partitioned = [
  { apiGroups: ["demo.ctrlmesh.io"], resources: ["foos"] },
  { apiGroups: [""], resources: ["configmaps"] },
];

/** An app with a subset gold that owns objects with one of these values of the label `tier`. */
function goldApp(...values: string[]): string {
  const objectSelector =
    values.length === 1 ? { matchLabels: { tier: values[0] } } : { matchExpressions: [{ key: "tier", operator: "In", values }] };
  return stringify({
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "VirtualApp",
    metadata: { name: "foo-operator", namespace: "foo-system" },
    spec: {
      selector: { matchLabels: { component: "foo-operator" } },
      configuration: { controller: { leaderElectionName: "foo-operator" } },
      route: {
        globalLimits: [
          { objectSelector: { matchExpressions: [{ key: "retired", operator: "DoesNotExist" }] }, resources: partitioned },
        ],
        subRules: [{ name: "gold", match: [{ objectSelector, resources: partitioned }] }],
      },
      subsets: [{ name: "gold", labels: { version: "gold" }, routeRules: ["gold"] }],
    },
  });
}

interface Status {
  readonly message: string;
  readonly reason: string;
}
interface List {
  readonly items?: readonly { readonly metadata: { readonly name: string } }[];
  readonly rows?: readonly { readonly object: { readonly metadata: { readonly name: string } } }[];
}

describeWithKube("objects of resources that are partitioned by label", () => {
  let kube: Kube;
  let mesh: Mesh;
  const probes = {} as Record<"gold" | "rest", Probe>;

  const createFoo = (namespace: string, name: string, labels: Record<string, string> = {}) =>
    mesh.client.create(FOOS, {
      apiVersion: "demo.ctrlmesh.io/v1",
      kind: "Foo",
      metadata: { namespace, name, labels },
      spec: { message: `MARK-${name}` },
    });
  const createMap = (namespace: string, name: string, labels: Record<string, string> = {}) =>
    mesh.client.create(CONFIG_MAPS, {
      metadata: { namespace, name, labels },
      data: { mark: `MARK-${name}`, decoy: '{"metadata":{"labels":{"tier":"gold"}}}' },
    });
  const relabel = (name: string, tier: string | null) =>
    mesh.client.patch(FOOS, { namespace: "team-a", name }, { type: "merge", body: { metadata: { labels: { tier } } } });
  const names = async (probe: Probe, path: string, accept = JSON_TYPE) => {
    const { status, body } = await probe.get(path, { accept });
    expect(status, path).toBe(200);
    const list = JSON.parse(body.toString()) as List;
    return [...(list.items ?? []), ...(list.rows ?? []).map(({ object }) => object)].map(({ metadata }) => metadata.name).sort();
  };
  const statusOf = (body: Buffer) => JSON.parse(body.toString()) as Status;
  const events = (stream: ProbeStream) =>
    stream
      .bytes()
      .toString()
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as { type: string; object: { metadata: { name?: string; resourceVersion?: string } } })
      .filter(({ type }) => type !== "BOOKMARK")
      .map(({ type, object }) => `${type} ${object.metadata.name ?? ""}`);
  const expectConverged = () =>
    eventually(async () => {
      const { status, metadata } = await mesh.client.get(VIRTUAL_APPS, { namespace: "foo-system", name: "foo-operator" });
      expect(status?.observedGeneration).toBe(metadata.generation);
      expect(status?.conditions?.find(({ type }) => type === "Converged")).toMatchObject({ status: "True" });
    }, 20_000);

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    for (const name of ["team-a", "team-b"]) await mesh.createNamespace(name);
    await mesh.apply(goldApp("gold"));
    for (const namespace of ["team-a", "team-b"]) {
      await createFoo(namespace, "gold-1", { tier: "gold" });
      await createFoo(namespace, "rest-1", { tier: "silver" });
      await createFoo(namespace, "bare-1");
      await createFoo(namespace, "retired-1", { tier: "gold", retired: "" });
      await createMap(namespace, "gold-1", { tier: "gold" });
      await createMap(namespace, "rest-1", { tier: "silver" });
      await createMap(namespace, "retired-1", { retired: "" });
    }
    const [rest, gold] = [
      await mesh.addPod({ name: "foo-0" }),
      await mesh.addPod({ name: "foo-gold-0", labels: { version: "gold" } }),
    ];
    probes.rest = createProbe({ url: rest.proxyUrl, caPem: rest.proxyCaPem, token: kube.token });
    probes.gold = createProbe({ url: gold.proxyUrl, caPem: gold.proxyCaPem, token: kube.token });
    await expectConverged();
  });
  afterAll(async () => {
    await probes.rest?.close();
    await probes.gold?.close();
    await mesh?.stop();
    await kube?.stop();
  });

  it("are listed only for their owner, in one namespace and in all, in every form", async () => {
    const twice = (...list: string[]) => list.flatMap((name) => [name, name]);
    for (const accept of [JSON_TYPE, TABLE, PARTIAL]) {
      expect(await names(probes.gold, `${FOO_PATH}/foos`, accept)).toEqual(twice("gold-1"));
      expect(await names(probes.rest, `${FOO_PATH}/foos`, accept)).toEqual(twice("bare-1", "rest-1"));
      expect(await names(probes.gold, `${FOO_PATH}/namespaces/team-b/foos`, accept)).toEqual(["gold-1"]);
      expect(await names(probes.gold, `${MAP_PATH}/configmaps`, accept)).toEqual(twice("gold-1"));
      expect(await names(probes.rest, `${MAP_PATH}/namespaces/team-a/configmaps`, accept)).toEqual(["rest-1"]);
    }
    // The caller's own selector still applies.
    expect(await names(probes.rest, `${FOO_PATH}/foos?labelSelector=tier`)).toEqual(twice("rest-1"));
    expect(await names(probes.gold, `${FOO_PATH}/foos?labelSelector=tier%3Dsilver`)).toEqual([]);
    for (const [side, own, other] of [
      ["gold", "gold-1", "rest-1"],
      ["rest", "rest-1", "gold-1"],
    ] as const) {
      const { headers, body } = await probes[side].get(`${MAP_PATH}/configmaps`, { accept: PROTOBUF });
      expect(headers["content-type"]).toBe(PROTOBUF);
      expect([own, other, "retired-1"].map((name) => body.includes(`MARK-${name}`))).toEqual([true, false, false]);
    }
  });

  it("are selected by the API server exactly as by the proxy, for every kind of selector term", async () => {
    const labels = [{}, { tier: "" }, { tier: "gold" }, { tier: "in" }];
    for (const [index, own] of labels.entries()) await createMap("team-b", `term-${index}`, { term: "x", ...own });
    const values = [[""], ["gold"], ["", "gold"], ["in", "gold"]];
    const terms: LabelTerm[] = [
      ...values.flatMap((row) => (["in", "notin"] as const).map((operator) => ({ key: "tier", operator, values: row }))),
      { key: "tier", operator: "exists", values: [] },
      { key: "tier", operator: "!", values: [] },
    ];
    for (const term of terms) {
      const selector = `term=x,${formatTerms([term])}`;
      const { items } = await mesh.client.list(CONFIG_MAPS, { namespace: "team-b", labelSelector: selector });
      const expected = labels.flatMap((own, index) => (matchesTerms([term], own) ? [`term-${index}`] : []));
      expect([selector, items.map(({ metadata }) => metadata.name)]).toEqual([selector, expected]);
    }
    const all = { namespace: "team-b", labelSelector: "term" };
    for (const { metadata } of (await mesh.client.list(CONFIG_MAPS, all)).items)
      await mesh.client.delete(CONFIG_MAPS, { namespace: "team-b", name: metadata.name ?? "" });
  });

  it("are 404 for other subsets, with the API server's own Status", async () => {
    const direct = createProbe({ url: kube.server, caPem: kube.caPem, token: kube.token });
    try {
      for (const path of [`${FOO_PATH}/namespaces/team-a/foos`, `${MAP_PATH}/namespaces/team-a/configmaps`]) {
        for (const accept of [JSON_TYPE, TABLE, `${PROTOBUF},application/json`]) {
          expect((await probes.gold.get(`${path}/gold-1`, { accept })).status).toBe(200);
          const refused = await probes.gold.get(`${path}/rest-1`, { accept });
          const none = await direct.get(`${path}/none-1`, { accept });
          expect([refused.status, none.status]).toEqual([404, 404]);
          if (accept === JSON_TYPE) {
            const expected = JSON.parse(none.body.toString().replaceAll("none-1", "rest-1")) as object;
            expect(JSON.parse(refused.body.toString())).toEqual(expected);
          }
          if (accept.startsWith(PROTOBUF)) expect(refused.headers["content-type"]).toBe(PROTOBUF);
          expect(refused.body.includes("rest-1")).toBe(true);
        }
        for (const side of ["gold", "rest"] as const) expect((await probes[side].get(`${path}/retired-1`)).status).toBe(404);
      }
    } finally {
      await direct.close();
    }
  });

  it("move between the subsets' watches when a third party changes their label", async () => {
    const watch = `${FOO_PATH}/namespaces/team-a/foos?watch=1&allowWatchBookmarks=true`;
    const streams = { gold: await probes.gold.stream(watch), rest: await probes.rest.stream(watch) };
    const partial = await probes.gold.stream(watch, { accept: TABLE });
    await createFoo("team-a", "mover", { tier: "silver" });
    await eventually(() => expect(events(streams.rest)).toContain("ADDED mover"));
    await relabel("mover", "gold");
    await eventually(() => expect(events(streams.gold)).toContain("ADDED mover"));
    await eventually(() => expect(events(streams.rest).at(-1)).toBe("DELETED mover"));
    await relabel("mover", null);
    await eventually(() => expect(events(streams.gold).at(-1)).toBe("DELETED mover"));
    await eventually(() => expect(events(streams.rest).at(-1)).toBe("ADDED mover"));
    expect(streams.gold.bytes().includes("MARK-rest-1") || streams.rest.bytes().includes("MARK-gold-1")).toBe(false);
    expect(partial.bytes().toString()).toContain('"DELETED"');
    expect([streams.gold.ended(), streams.rest.ended(), partial.ended()]).toEqual([false, false, false]);
    expect(events(streams.gold)).toEqual(["ADDED gold-1", "ADDED mover", "DELETED mover"]);
  });

  it("move between the subsets' watches in protobuf", async () => {
    const watch = `${MAP_PATH}/namespaces/team-a/configmaps?watch=1`;
    const gold = await probes.gold.stream(watch, { accept: PROTOBUF });
    await eventually(() => expect(gold.bytes().includes("MARK-gold-1")).toBe(true));
    await createMap("team-a", "moving-map", { tier: "silver" });
    const tier = (value: string) =>
      mesh.client.patch(
        CONFIG_MAPS,
        { namespace: "team-a", name: "moving-map" },
        { type: "merge", body: { metadata: { labels: { tier: value } } } },
      );
    await tier("gold");
    await eventually(() => expect(gold.bytes().includes("MARK-moving-map")).toBe(true));
    await tier("silver");
    await eventually(() => expect(gold.bytes().includes("DELETED")).toBe(true));
    expect(gold.bytes().includes("MARK-rest-1")).toBe(false);
    expect(gold.ended()).toBe(false);
  });

  it("are created only with labels of the creating subset", async () => {
    const path = `${FOO_PATH}/namespaces/team-a/foos`;
    const foo = (tier: string, more: object) => ({
      apiVersion: "demo.ctrlmesh.io/v1",
      kind: "Foo",
      metadata: { labels: { tier }, ...more },
      spec: { message: "x" },
    });
    expect((await probes.gold.send("POST", path, foo("gold", { name: "made" }))).status).toBe(201);
    expect((await probes.gold.send("POST", path, foo("gold", { generateName: "made-" }))).status).toBe(201);
    for (const more of [{ name: "other" }, { generateName: "other-" }]) {
      const { status, body } = await probes.gold.send("POST", path, foo("silver", more));
      expect(status).toBe(403);
      expect(statusOf(body)).toMatchObject({ reason: "Forbidden", message: expect.stringContaining("the default subset") });
    }
    expect(statusOf((await probes.rest.send("POST", path, foo("gold", { name: "other" }))).body).message).toContain(
      'belongs to subset "gold"',
    );
  });

  it("are changed only by their owner, which cannot change their label to another subset's", async () => {
    const path = `${FOO_PATH}/namespaces/team-a/foos`;
    const direct = createProbe({ url: kube.server, caPem: kube.caPem, token: kube.token });
    try {
      const read = async (name: string) =>
        JSON.parse((await direct.get(`${path}/${name}`)).body.toString()) as {
          metadata: { labels: Record<string, string> };
          spec: { message: string };
        };
      const own = await read("gold-1");
      const other = await read("rest-1");
      const { gold } = probes;
      const changed = { ...own, spec: { message: "by-put" } };
      expect((await gold.send("PUT", `${path}/gold-1`, changed)).status).toBe(200);
      expect((await gold.send("PATCH", `${path}/gold-1`, { spec: { message: "by-patch" } })).status).toBe(200);
      const noted = await gold.send("PATCH", `${path}/gold-1`, { metadata: { labels: { note: "x" } } });
      expect(noted.status).toBe(200);
      expect((await read("gold-1")).metadata.labels).toEqual({ tier: "gold", note: "x" });
      const status = { status: { reconciledBy: "probe" } };
      expect((await gold.send("PATCH", `${path}/gold-1/status`, status)).status).toBe(200);
      const operations = Buffer.from(JSON.stringify([{ op: "replace", path: "/metadata/labels/tier", value: "silver" }]));
      const applied = (tier: string) =>
        Buffer.from(`apiVersion: demo.ctrlmesh.io/v1\nkind: Foo\nmetadata:\n  name: gold-1\n  labels: {tier: ${tier}}\n`);
      const apply = `${path}/gold-1?fieldManager=probe&force=true`;
      expect((await gold.send("PATCH", apply, applied("gold"), { "content-type": APPLY })).status).toBe(200);

      const refused: [string, Promise<{ status: number; body: Buffer }>][] = [
        [
          "put with another owner's label",
          gold.send("PUT", `${path}/gold-1`, { ...changed, metadata: { ...own.metadata, labels: {} } }),
        ],
        [
          "merge patch with another owner's label",
          gold.send("PATCH", `${path}/gold-1`, { metadata: { labels: { tier: null } } }),
        ],
        [
          "JSON patch with another owner's label",
          gold.send("PATCH", `${path}/gold-1`, operations, { "content-type": "application/json-patch+json" }),
        ],
        ["apply with another owner's label", gold.send("PATCH", apply, applied("silver"), { "content-type": APPLY })],
        ["put", gold.send("PUT", `${path}/rest-1`, { ...other, metadata: { ...other.metadata, labels: own.metadata.labels } })],
        ["patch", gold.send("PATCH", `${path}/rest-1`, { spec: { message: "no" } })],
        ["take", gold.send("PATCH", `${path}/rest-1`, { metadata: { labels: { tier: "gold" } } })],
        ["status", gold.send("PATCH", `${path}/rest-1/status`, status)],
        ["delete", gold.send("DELETE", `${path}/rest-1`)],
      ];
      for (const [what, answer] of refused) {
        const { status: code, body } = await answer;
        expect([what, code, statusOf(body).message]).toEqual([what, 403, expect.stringContaining("the default subset")]);
      }
      expect(await read("rest-1")).toMatchObject({ metadata: { labels: { tier: "silver" } }, spec: { message: "MARK-rest-1" } });
      expect((await read("gold-1")).metadata.labels).toMatchObject({ tier: "gold" });
      for (const method of ["PATCH", "DELETE"] as const) {
        const { status: code, body } = await gold.send(method, `${path}/none-1`, method === "PATCH" ? {} : undefined);
        expect([code, statusOf(body).reason]).toEqual([404, "NotFound"]);
      }
    } finally {
      await direct.close();
    }
  });

  it("are changed in protobuf only by their owner", async () => {
    const path = `${MAP_PATH}/namespaces/team-b/configmaps`;
    const headers = { accept: PROTOBUF, "content-type": PROTOBUF };
    const body = (await probes.gold.get(`${path}/gold-1`, { accept: PROTOBUF })).body;
    expect((await probes.gold.send("PUT", `${path}/gold-1`, body, headers)).status).toBe(200);
    const refused = await probes.rest.send("PUT", `${path}/gold-1`, body, headers);
    expect([refused.status, refused.headers["content-type"]]).toEqual([403, PROTOBUF]);
    expect(refused.body.includes('subset "gold"')).toBe(true);
    expect((await probes.rest.send("DELETE", `${path}/gold-1`, undefined, headers)).status).toBe(403);
  });

  it("are deleted by deletecollection only for their owner", async () => {
    await createFoo("team-b", "gold-2", { tier: "gold" });
    expect((await probes.gold.send("DELETE", `${FOO_PATH}/namespaces/team-b/foos`)).status).toBe(200);
    const left = await mesh.client.list(FOOS, { namespace: "team-b" });
    expect(left.items.map(({ metadata }) => metadata.name).sort()).toEqual(["bare-1", "rest-1", "retired-1"]);
    expect((await probes.rest.send("DELETE", `${MAP_PATH}/namespaces/team-b/configmaps?labelSelector=tier`)).status).toBe(200);
    const maps = await mesh.client.list(CONFIG_MAPS, { namespace: "team-b" });
    expect(
      maps.items
        .map(({ metadata }) => metadata.name)
        .filter((name) => name?.endsWith("-1"))
        .sort(),
    ).toEqual(["gold-1", "retired-1"]);
  });

  it("move to another subset when the rule changes, and every watch of the resource ends with 410", async () => {
    const watch = `${FOO_PATH}/namespaces/team-a/foos?watch=1`;
    const pods = await probes.gold.stream("/api/v1/namespaces/team-a/pods?watch=1");
    const streams = { gold: await probes.gold.stream(watch), rest: await probes.rest.stream(watch) };
    let hasMoved = false;
    // A list meanwhile gets 503 or every object, never an empty list.
    const listing = (async () => {
      for (let turn = 0; !hasMoved; turn++) {
        // A list that runs during the change breaks off.
        const answer = await probes.rest.get(`${FOO_PATH}/namespaces/team-a/foos`).catch(() => undefined);
        if (answer === undefined || answer.status === 503) continue;
        expect([turn, answer.status, answer.body.includes("bare-1")]).toEqual([turn, 200, true]);
      }
    })();
    await mesh.apply(goldApp("gold", "silver"));
    await expectConverged();
    hasMoved = true;
    await listing;
    for (const stream of Object.values(streams)) {
      await eventually(() => expect(stream.ended()).toBe(true));
      expect(stream.bytes().toString()).toContain('"code":410');
    }
    expect(pods.ended()).toBe(false); // watches of other resources go on
    const after = await names(probes.gold, `${FOO_PATH}/namespaces/team-a/foos`);
    expect(after).toContain("rest-1");
    expect(after).not.toContain("bare-1");
    expect(await names(probes.rest, `${FOO_PATH}/namespaces/team-a/foos`)).not.toContain("rest-1");
    expect(
      (await probes.gold.send("PATCH", `${FOO_PATH}/namespaces/team-a/foos/rest-1`, { spec: { message: "new" } })).status,
    ).toBe(200);
    expect((await probes.rest.get(`${FOO_PATH}/namespaces/team-a/foos/rest-1`)).status).toBe(404);
  });
});
