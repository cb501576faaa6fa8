// Settings for callers on the real control plane: the prefix of the user agent, callers that only the default subset serves, and reads
// without managedFields. Server-side apply keeps working without managedFields in the reads.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { annotationKey } from "../../src/api/annotations.ts";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { CONFIG_MAPS, LEASES } from "../../src/kube/client/resources.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe } from "../support/probe.ts";
import { describeWithKube } from "../support/requirements.ts";

const JSON_TYPE = "application/json";
const PROTOBUF = "application/vnd.kubernetes.protobuf";
const GC = { "user-agent": "gc-client/v1.2 (linux/amd64) kubernetes/$Format" };
const CONFIG_MAPS_PATH = "/api/v1/configmaps";
const WATCH_LIST = `${CONFIG_MAPS_PATH}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`;

interface Listed {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly { readonly metadata: { readonly name: string; readonly namespace: string } }[];
}

describeWithKube("callers", () => {
  let kube: Kube;
  let mesh: Mesh;
  const pods = {} as Record<"default" | "v2", MeshPod>;
  const probes = {} as Record<"default" | "v2" | "direct", Probe>;

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    for (const name of ["team-a", "canary-eu"]) {
      await mesh.createNamespace(name);
      await mesh.client.create(CONFIG_MAPS, { metadata: { namespace: name, name: "here" }, data: { a: "b" } });
    }
    await applyApp();
    pods.default = await mesh.addPod({ name: "foo-0" });
    pods.v2 = await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } });
    for (const side of ["default", "v2"] as const) {
      const { proxyUrl: url, proxyCaPem: caPem } = pods[side];
      probes[side] = createProbe({ url, caPem, token: kube.token });
    }
    probes.direct = createProbe({ url: kube.server, caPem: kube.caPem, token: kube.token });
  });
  afterAll(async () => {
    for (const probe of Object.values(probes)) await probe.close();
    await mesh?.stop();
    await kube?.stop();
  });

  const applyApp = (defaultOnly = ["gc-client/*"], annotation = "true") => {
    const app = parse(demoVirtualApp()) as { metadata: object; spec: { configuration: object; route: object } };
    const { configuration, route } = app.spec;
    return mesh.apply(
      stringify({
        ...app,
        metadata: { ...app.metadata, annotations: { [annotationKey("strip-managed-fields")]: annotation } },
        spec: {
          ...app.spec,
          configuration: { ...configuration, restConfigOverrides: { userAgentOrPrefix: "mesh/" } },
          route: { ...route, subsetDefaultOnlyUserAgents: defaultOnly },
        },
      }),
    );
  };
  const list = async (probe: Probe, headers: Record<string, string> = {}): Promise<Listed> => {
    const { status, body } = await probe.get(CONFIG_MAPS_PATH, { accept: JSON_TYPE, ...headers });
    expect(status).toBe(200);
    return JSON.parse(body.toString()) as Listed;
  };
  const namespacesOf = ({ items }: Listed) => new Set(items.map(({ metadata }) => metadata.namespace));

  it("the user agent in the audit log is the operator's own with the prefix", async () => {
    const object = { metadata: { name: "prefixed" } };
    const path = "/api/v1/namespaces/team-a/configmaps";
    expect((await probes.default.send("POST", path, object, { "user-agent": "shop/1.0" })).status).toBe(201);
    await eventually(() => {
      const written = kube.audit().find(({ objectRef }) => objectRef?.name === "prefixed");
      expect(written?.userAgent).toBe("mesh/shop/1.0");
    });
  });

  describe("a caller that only the default subset serves", () => {
    it("gets objects in the default subset, while other callers get objects in every subset", async () => {
      expect(namespacesOf(await list(probes.default, GC))).toContain("team-a");
      expect([...namespacesOf(await list(probes.v2))]).toEqual(["canary-eu"]);
    });

    it("gets empty lists with a real resourceVersion in another subset", async () => {
      const empty = await list(probes.v2, GC);
      expect(empty).toMatchObject({ items: [], metadata: { resourceVersion: expect.stringMatching(/^[1-9]\d*$/) } });
      for (const path of [CONFIG_MAPS_PATH, "/api/v1/namespaces/canary-eu/configmaps", "/api/v1/namespaces", "/api/v1/nodes"]) {
        for (const accept of [JSON_TYPE, PROTOBUF, `${JSON_TYPE};as=Table;v=v1;g=meta.k8s.io`]) {
          const { status, body } = await probes.v2.get(path, { ...GC, accept });
          expect([status, body.includes("canary-eu"), body.includes("team-a")], `${path} ${accept}`).toEqual([200, false, false]);
        }
      }
    });

    it("has watches in another subset that stay open without events", async () => {
      const { resourceVersion } = (await list(probes.v2, GC)).metadata;
      const initial = await probes.v2.stream(WATCH_LIST, { ...GC, accept: JSON_TYPE });
      const later = await probes.v2.stream(`${CONFIG_MAPS_PATH}?watch=1&resourceVersion=${resourceVersion}`, GC);
      const other = await probes.v2.stream(`${CONFIG_MAPS_PATH}?watch=1`);
      await eventually(() => expect(initial.bytes().includes("k8s.io/initial-events-end")).toBe(true));
      await mesh.client.create(CONFIG_MAPS, { metadata: { namespace: "canary-eu", name: "meanwhile" } });
      await eventually(() => expect(other.bytes().includes("meanwhile")).toBe(true));
      expect([later.bytes().length, later.ended(), initial.ended()]).toEqual([0, false, false]);
      expect(initial.bytes().includes('"ADDED"')).toBe(false);
    });

    it("may write only the leader-election lock in another subset, and the 403 says why", async () => {
      for (const [method, path] of [
        ["POST", "/api/v1/namespaces/canary-eu/configmaps"],
        ["PUT", "/api/v1/namespaces/canary-eu/configmaps/here"],
        ["PATCH", "/api/v1/namespaces/canary-eu/configmaps/here"],
        ["DELETE", "/api/v1/namespaces/canary-eu/configmaps/here"],
        ["DELETE", "/api/v1/namespaces/canary-eu/configmaps"],
      ] as const) {
        const { status, body } = await probes.v2.send(method, path, { metadata: { name: "here" } }, GC);
        expect([status, JSON.parse(body.toString())], `${method} ${path}`).toMatchObject([
          403,
          {
            kind: "Status",
            reason: "Forbidden",
            message: expect.stringContaining('subsetDefaultOnlyUserAgents of the VirtualApp has "gc-client/*"'),
          },
        ]);
      }
      const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "foo-operator" }, spec: {} };
      const leases = "/apis/coordination.k8s.io/v1/namespaces/foo-system/leases";
      expect((await probes.v2.send("POST", leases, lease, GC)).status).toBe(201);
      await mesh.client.get(LEASES, { namespace: "foo-system", name: "foo-operator---v2" });
    });

    it("lists again when subsetDefaultOnlyUserAgents no longer has its user agent, and when the entry is back", async () => {
      const idle = await probes.v2.stream(`${CONFIG_MAPS_PATH}?watch=1`, GC);
      await applyApp([]);
      await eventually(() =>
        expect([idle.ended(), idle.bytes().toString()]).toEqual([true, expect.stringContaining('"Expired"')]),
      );
      expect([...namespacesOf(await list(probes.v2, GC))]).toEqual(["canary-eu"]);
      const live = await probes.v2.stream(`${CONFIG_MAPS_PATH}?watch=1`, GC);
      await applyApp();
      await eventually(() =>
        expect([live.ended(), live.bytes().toString()]).toEqual([true, expect.stringContaining('"Expired"')]),
      );
      expect((await list(probes.v2, GC)).items).toEqual([]);
    });
  });

  describe("managedFields", () => {
    const path = "/api/v1/namespaces/team-a/configmaps/applied";
    const MANAGER = "shop-manager";
    const apply = (probe: Probe, manager: string, a: string) =>
      probe.send(
        "PATCH",
        `${path}?fieldManager=${manager}`,
        { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "applied", namespace: "team-a" }, data: { a } },
        { "content-type": "application/apply-patch+yaml" },
      );
    const managersOf = async () => {
      const { body } = await probes.direct.get(path, { accept: JSON_TYPE });
      const { metadata } = JSON.parse(body.toString()) as {
        metadata: { managedFields?: { manager: string; operation: string }[] };
      };
      return (metadata.managedFields ?? []).map(({ manager, operation }) => `${manager} ${operation}`);
    };

    it("are left out of gets, lists and watches in every encoding, which contain all other fields", async () => {
      const applied = await apply(probes.default, MANAGER, "1");
      expect(applied.status).toBe(201);
      expect(applied.body.includes(MANAGER)).toBe(true); // the answer to a write is unchanged
      const table = `${JSON_TYPE};as=Table;v=v1;g=meta.k8s.io`;
      const partial = (type: string, list = "") => `${type};as=PartialObjectMetadata${list};v=v1;g=meta.k8s.io`;
      const reads: [string, string][] = [
        ...[JSON_TYPE, PROTOBUF, table, partial(JSON_TYPE), partial(PROTOBUF)].map((accept): [string, string] => [path, accept]),
        ...[JSON_TYPE, PROTOBUF, table, partial(JSON_TYPE, "List"), partial(PROTOBUF, "List")].map((accept): [string, string] => [
          CONFIG_MAPS_PATH,
          accept,
        ]),
        [`${CONFIG_MAPS_PATH}?limit=500&includeObject=Object`, table],
      ];
      for (const [target, accept] of reads) {
        const [direct, proxied] = [await probes.direct.get(target, { accept }), await probes.default.get(target, { accept })];
        expect(
          [direct.status, proxied.status, proxied.body.includes(MANAGER), proxied.body.includes("applied")],
          `${target} ${accept}`,
        ).toEqual([200, 200, false, true]);
        if (!accept.includes("Table")) expect(direct.body.includes(MANAGER)).toBe(true);
      }
      const { managedFields: _, ...metadata } = (await object(probes.direct)).metadata;
      expect(await object(probes.default)).toMatchObject({ metadata, data: { a: "1" } });
      for (const accept of [JSON_TYPE, PROTOBUF]) {
        for (const target of [`${CONFIG_MAPS_PATH}?watch=1`, WATCH_LIST]) {
          const stream = await probes.default.stream(target, { accept });
          await eventually(() => expect(stream.bytes().includes("applied")).toBe(true));
          expect(stream.bytes().includes(MANAGER), `${target} ${accept}`).toBe(false);
        }
      }
    });

    const object = async (probe: Probe) =>
      JSON.parse((await probe.get(path, { accept: JSON_TYPE })).body.toString()) as {
        metadata: { managedFields?: unknown; resourceVersion: string };
        data: Record<string, string>;
      };

    it("are kept in the stored object when the operator gets, changes and updates that object", async () => {
      const read = await object(probes.default);
      const { status } = await probes.default.send("PUT", `${path}?fieldManager=updater`, {
        ...read,
        data: { ...read.data, b: "2" },
      });
      expect(status).toBe(200);
      expect(await managersOf()).toEqual([`${MANAGER} Apply`, "updater Update"]);
      // The field still has its manager: only another manager's apply is a conflict.
      expect((await apply(probes.default, "other-manager", "9")).status).toBe(409);
      expect((await apply(probes.default, MANAGER, "3")).status).toBe(200);
      expect((await object(probes.default)).data).toEqual({ a: "3", b: "2" });
    });

    it("are cleared only by an update with an empty list of managedFields, which a stripped object never has", async () => {
      const put = async (managedFields: readonly object[] | undefined) => {
        const { metadata, ...rest } = await object(probes.default);
        const sent = { ...rest, metadata: { ...metadata, managedFields } };
        expect((await probes.default.send("PUT", `${path}?fieldManager=updater`, sent)).status).toBe(200);
        return managersOf();
      };
      expect(await put(undefined)).toContain(`${MANAGER} Apply`);
      expect(await put([])).toEqual([]);
    });

    it("are still left out after an invalid value of the annotation, which the condition Accepted names", async () => {
      await applyApp(undefined, "yes please");
      await eventually(async () => {
        const { status } = await mesh.client.get(VIRTUAL_APPS, { namespace: "foo-system", name: "foo-operator" });
        expect(status?.conditions?.find(({ type }) => type === "Accepted")).toMatchObject({
          status: "False",
          message: expect.stringContaining(
            `metadata.annotations[${annotationKey("strip-managed-fields")}]: "yes please": must be "true" or "false"`,
          ),
        });
      });
      expect((await object(probes.default)).metadata).not.toHaveProperty("managedFields");
      await applyApp(undefined, "false");
      expect((await apply(probes.default, `${MANAGER}&force=true`, "5")).status).toBe(200);
      await eventually(async () => expect((await object(probes.default)).metadata).toHaveProperty("managedFields"));
    });
  });
});
