// No byte of another subset's object reaches an operator, in any encoding, list or watch, while namespaces are created and moved.
// A probe keeps all bytes that it receives.
import { afterAll, beforeAll, expect, it } from "vitest";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe } from "../support/probe.ts";
import { describeWithKube } from "../support/requirements.ts";

const PROTOBUF = "application/vnd.kubernetes.protobuf";
const JSON_TYPE = "application/json";
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const PARTIAL_PROTOBUF = `${PROTOBUF};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io`;
const ACCEPTS = [JSON_TYPE, PROTOBUF, TABLE, PARTIAL, PARTIAL_PROTOBUF];
const DEFAULT_NAMESPACES = ["team-a", "team-b"];
const CANARY_NAMESPACES = ["canary-eu", "team-c"];
const mark = (namespace: string) => `MARK-${namespace}-X`;

describeWithKube("an operator receives no bytes of other subsets' objects", () => {
  let kube: Kube;
  let mesh: Mesh;
  const probes = {} as Record<"default" | "canary", Probe>;

  const createConfigMap = (namespace: string, name: string) =>
    mesh.client.create(CONFIG_MAPS, {
      metadata: {
        namespace,
        name: `${name}-${mark(namespace).toLowerCase()}`,
        labels: { mark: mark(namespace) },
        annotations: { mark: mark(namespace) },
      },
      data: { mark: mark(namespace), decoy: '{"metadata":{"namespace":"kube-decoy"}}]},"items":[' },
    });

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    for (const name of DEFAULT_NAMESPACES) await mesh.createNamespace(name, { mark: mark(name) });
    await mesh.createNamespace("canary-eu", { mark: mark("canary-eu") });
    await mesh.createNamespace("team-c", { "ns-type": "canary-1", mark: mark("team-c") });
    await mesh.apply(demoVirtualApp());
    for (const namespace of [...DEFAULT_NAMESPACES, ...CANARY_NAMESPACES]) {
      for (const name of ["a", "b", "c"]) await createConfigMap(namespace, name);
      await mesh.createFoo(namespace, "foo", mark(namespace));
    }
    const [one, two] = [
      await mesh.addPod({ name: "foo-0" }),
      await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } }),
    ];
    // The probes are cluster administrators, so that only the mesh hides objects, and not RBAC.
    probes.default = createProbe({ url: one.proxyUrl, caPem: one.proxyCaPem, token: kube.token });
    probes.canary = createProbe({ url: two.proxyUrl, caPem: two.proxyCaPem, token: kube.token });
  });
  afterAll(async () => {
    await probes.default?.close();
    await probes.canary?.close();
    await mesh?.stop();
    await kube?.stop();
  });

  const subsets = [
    ["default", DEFAULT_NAMESPACES, CANARY_NAMESPACES],
    ["canary", CANARY_NAMESPACES, DEFAULT_NAMESPACES],
  ] as const;

  it.each(subsets)("in lists of every encoding and kind: %s subset", async (side, own, others) => {
    for (const path of [
      "/api/v1/configmaps",
      "/apis/demo.ctrlmesh.io/v1/foos",
      "/api/v1/namespaces",
      "/api/v1/configmaps?limit=2",
    ]) {
      for (const accept of ACCEPTS) {
        if (path.includes("foos") && accept === PROTOBUF) continue; // custom resources have no protobuf
        const { status, body } = await probes[side].get(path, { accept });
        expect(status, `${path} ${accept}`).toBe(200);
        if (!path.includes("limit") && !(path.includes("namespaces") && accept === TABLE)) {
          for (const namespace of own) expect(body.includes(namespace), `${namespace} in ${path} ${accept}`).toBe(true);
        }
        for (const namespace of others) expect(body.includes(namespace), `${namespace} in ${path} ${accept}`).toBe(false);
      }
    }
  });

  it.each(subsets)("in watches, while namespaces are created: %s subset", async (side, own, others) => {
    const streams = await Promise.all(
      [JSON_TYPE, PROTOBUF, TABLE, PARTIAL.replace("List", ""), PARTIAL_PROTOBUF.replace("List", "")].map((accept) =>
        probes[side].stream("/api/v1/configmaps?watch=1&allowWatchBookmarks=true", { accept }),
      ),
    );
    const listing = await probes[side].stream(
      "/api/v1/configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
      { accept: JSON_TYPE },
    );
    await eventually(() => expect(listing.bytes().includes("k8s.io/initial-events-end")).toBe(true));
    const created = [`canary-${side}`, `plain-${side}`] as const;
    await mesh.createNamespace(created[0]);
    await createConfigMap(created[0], "fresh");
    await mesh.createNamespace(created[1]);
    await createConfigMap(created[1], "fresh");
    for (const namespace of [...own, ...others]) await createConfigMap(namespace, `late-${side}`);
    const ownNew = side === "canary" ? created[0] : created[1];
    for (const stream of [...streams, listing]) {
      await eventually(() => {
        const seen = stream.bytes().toString("latin1");
        const missing = [...own, ownNew].filter((namespace) => !seen.includes(mark(namespace).toLowerCase()));
        expect(missing, `${stream.contentType}, ended ${stream.ended()}: ${seen.slice(-600)}`).toEqual([]);
      });
    }
    const otherNew = side === "canary" ? created[1] : created[0];
    for (const namespace of [...others, otherNew])
      expect(probes[side].received().includes(mark(namespace).toLowerCase())).toBe(false);
  });

  it.each(subsets)("in answers to requests for one object: %s subset", async (side, own, others) => {
    const path = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps/a-${mark(namespace).toLowerCase()}`;
    for (const namespace of own) expect((await probes[side].get(path(namespace))).status).toBe(200);
    for (const namespace of others) {
      const owner = side === "canary" ? "the default subset" : 'subset "v2"';
      for (const answer of [
        await probes[side].get(path(namespace)),
        await probes[side].send("PUT", path(namespace), { metadata: { name: "x" } }),
        await probes[side].send("PATCH", path(namespace), { data: { x: "y" } }),
        await probes[side].send("DELETE", path(namespace)),
        await probes[side].send("POST", `/api/v1/namespaces/${namespace}/configmaps`, { metadata: { name: "new" } }),
        await probes[side].send("DELETE", `/api/v1/namespaces/${namespace}/configmaps`),
      ]) {
        expect(answer.status).toBe(403);
        const status = JSON.parse(answer.body.toString()) as { kind: string; message: string };
        expect(status).toMatchObject({ kind: "Status", reason: "Forbidden", message: expect.stringContaining(owner) });
        expect(status.message).toMatch(/^ctrlmesh:/);
      }
      const empty = JSON.parse((await probes[side].get(`/api/v1/namespaces/${namespace}/configmaps`)).body.toString());
      expect(empty).toMatchObject({ items: [], metadata: { resourceVersion: expect.stringMatching(/^\d+$/) } });
    }
  });

  it("from a namespace that has moved away, and the new owner gets its objects", async () => {
    const before = await probes.default.stream("/api/v1/configmaps?watch=1");
    await mesh.labelNamespace("team-b", { "ns-type": "canary-1" });
    await eventually(async () => {
      const { body } = await probes.canary.get("/api/v1/namespaces/team-b/configmaps");
      expect((JSON.parse(body.toString()) as { items: unknown[] }).items.length).toBeGreaterThanOrEqual(3);
    });
    await eventually(() => expect(before.bytes().toString()).toContain('"reason":"Expired"'));
    const { items } = JSON.parse((await probes.default.get("/api/v1/configmaps")).body.toString()) as {
      items: { metadata: { namespace: string } }[];
    };
    expect(items.map(({ metadata }) => metadata.namespace)).not.toContain("team-b");
  });

  it("with an invalid token, but the API server's own 401", async () => {
    const pod = await mesh.addPod({ name: "foo-anonymous" });
    const anonymous = createProbe({ url: pod.proxyUrl, caPem: pod.proxyCaPem, token: "not-a-token" });
    expect((await anonymous.get("/api/v1/configmaps")).status).toBe(401);
    await anonymous.close();
  });
});
