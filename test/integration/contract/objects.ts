// Contract: create, get and update of objects, their metadata, optimistic concurrency and refusals.
import { describe, expect, it } from "vitest";
import { type Context, configMap, secret, WIDGETS, widget } from "./context.ts";

export function describeObjects(context: Context): void {
  describe("objects", () => {
    it("gives a new object its uid, creation time and resourceVersion", async () => {
      const namespace = await context.namespace();
      const { code, body } = await context.client.post(`/api/v1/namespaces/${namespace}/configmaps`, configMap("one"));
      expect(code).toBe(201);
      expect(body).toMatchObject({
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "one", namespace },
        data: { key: "value" },
      });
      expect(body.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
      expect(body.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      expect(Number(body.metadata.resourceVersion)).toBeGreaterThan(0);
      const read = await context.client.get(`/api/v1/namespaces/${namespace}/configmaps/one`);
      expect(read).toMatchObject({ code: 200, body });
    });

    it("increases resourceVersion over all kinds", async () => {
      const namespace = await context.namespace();
      const first = await context.client.post(`/api/v1/namespaces/${namespace}/configmaps`, configMap("one"));
      const second = await context.client.post(`/api/v1/namespaces/${namespace}/secrets`, secret("two"));
      expect(Number(second.body.metadata.resourceVersion)).toBeGreaterThan(Number(first.body.metadata.resourceVersion));
    });

    it("makes a name from generateName", async () => {
      const namespace = await context.namespace();
      const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { generateName: "gen-" } };
      const created = await context.client.post(`/api/v1/namespaces/${namespace}/configmaps`, body);
      expect(created.body.metadata).toMatchObject({ generateName: "gen-", name: expect.stringMatching(/^gen-[a-z0-9]{5}$/) });
    });

    it("refuses a second object of the same name with the reason AlreadyExists", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      await context.client.post(path, configMap("one"));
      const { code, body } = await context.client.post(path, configMap("one"));
      expect(code).toBe(409);
      expect(body).toMatchObject({
        kind: "Status",
        status: "Failure",
        reason: "AlreadyExists",
        details: { name: "one", kind: "configmaps" },
        code: 409,
      });
      expect(body.message).toBe('configmaps "one" already exists');
    });

    it("answers 404 for a missing object and for a create in a missing namespace, but an empty list for a list there", async () => {
      const namespace = await context.namespace();
      const missing = await context.client.get(`/api/v1/namespaces/${namespace}/configmaps/none`);
      expect(missing).toMatchObject({
        code: 404,
        body: { reason: "NotFound", message: 'configmaps "none" not found', details: { name: "none", kind: "configmaps" } },
      });
      const created = await context.client.post("/api/v1/namespaces/no-such-namespace/configmaps", configMap("one"));
      expect(created).toMatchObject({
        code: 404,
        body: { reason: "NotFound", message: 'namespaces "no-such-namespace" not found' },
      });
      const custom = await context.client.post(`${WIDGETS}/namespaces/no-such-namespace/widgets`, widget("one"));
      expect(custom).toMatchObject({ code: 404, body: { message: 'namespaces "no-such-namespace" not found' } });
      const listed = await context.client.get("/api/v1/namespaces/no-such-namespace/configmaps");
      expect(listed).toMatchObject({ code: 200, body: { kind: "ConfigMapList", items: [] } });
    });

    it("refuses invalid and missing names", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      const bad = await context.client.post(path, configMap("Not_A_Name"));
      expect(bad).toMatchObject({ code: 422, body: { reason: "Invalid", details: { causes: [{ field: "metadata.name" }] } } });
      const none = await context.client.post(path, { apiVersion: "v1", kind: "ConfigMap", metadata: {} });
      expect(none).toMatchObject({ code: 422, body: { reason: "Invalid" } });
    });

    it("refuses bodies that do not match the path or the kind", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      expect((await context.client.post(path, { ...configMap("one"), kind: "Secret" })).code).toBe(400);
      expect((await context.client.post(path, configMap("one", { namespace: "other" }))).code).toBe(400);
      expect((await context.client.post(path, "{not json")).code).toBe(400);
      expect((await context.client.post(path, "hello", { type: "text/plain" })).code).toBe(415);
      expect((await context.client.post(path, { ...configMap("one"), data: { number: 1 } })).code).toBe(400);
    });

    it("refuses an unsupported answer type, and a body over 3 MiB", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      expect(await context.client.get(path, { accept: "text/html" })).toMatchObject({ code: 406 });
      expect(await context.client.get(`${WIDGETS}/widgets`, { accept: "application/vnd.kubernetes.protobuf" })).toMatchObject({
        code: 406,
      });
      expect(
        (await context.client.get(`${WIDGETS}/widgets`, { accept: "application/vnd.kubernetes.protobuf,application/json" })).code,
      ).toBe(200);
      const large = configMap("large", { data: { blob: "x".repeat(3 * 1024 * 1024 + 10) } });
      expect((await context.client.post(path, large)).code).toBe(413);
    });

    it("refuses an update of a version that is not the latest", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      const { body: first } = await context.client.post(path, configMap("one"));
      const updated = await context.client.put(`${path}/one`, { ...first, data: { key: "new" } });
      expect(updated).toMatchObject({ code: 200, body: { data: { key: "new" }, metadata: { uid: first.metadata.uid } } });
      expect(updated.body.metadata.resourceVersion).not.toBe(first.metadata.resourceVersion);
      const stale = await context.client.put(`${path}/one`, { ...first, data: { key: "stale" } });
      expect(stale).toMatchObject({ code: 409, body: { reason: "Conflict", details: { name: "one", kind: "configmaps" } } });
      expect(stale.body.message).toContain(
        "the object has been modified; please apply your changes to the latest version and try again",
      );
    });

    it("accepts an update without a version for built-in kinds, but not for custom resources", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      await context.client.post(path, configMap("one"));
      expect((await context.client.put(`${path}/one`, configMap("one", { data: { a: "b" } }))).code).toBe(200);
      await context.client.post(`${WIDGETS}/namespaces/${namespace}/widgets`, widget("one"));
      expect(await context.client.put(`${WIDGETS}/namespaces/${namespace}/widgets/one`, widget("one"))).toMatchObject({
        code: 422,
      });
    });

    it("keeps the resourceVersion when an update changes nothing", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      const { body: first } = await context.client.post(path, configMap("one"));
      const again = await context.client.put(`${path}/one`, first);
      expect(again.body.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
    });

    it("refuses an update that changes the name or the uid", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      const { body: first } = await context.client.post(path, configMap("one"));
      expect((await context.client.put(`${path}/one`, configMap("two"))).code).toBe(400);
      const otherUid = { ...first, metadata: { ...first.metadata, uid: "00000000-0000-0000-0000-000000000000" } };
      expect(await context.client.put(`${path}/one`, otherUid)).toMatchObject({ code: 409, body: { reason: "Conflict" } });
    });

    it("creates a missing lease by an update, but not a missing configmap", async () => {
      const namespace = await context.namespace();
      expect((await context.client.put(`/api/v1/namespaces/${namespace}/configmaps/one`, configMap("one"))).code).toBe(404);
      const lease = {
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { name: "one", namespace },
        spec: { holderIdentity: "me" },
      };
      const created = await context.client.put(`/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/one`, lease);
      expect(created).toMatchObject({ code: 201, body: { spec: { holderIdentity: "me" } } });
    });

    it("does not write in a dry run", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      expect(await context.client.post(`${path}?dryRun=All`, configMap("one"))).toMatchObject({
        code: 201,
        body: { metadata: { name: "one" } },
      });
      expect((await context.client.get(`${path}/one`)).code).toBe(404);
    });

    it("stores the stringData of a secret as encoded data", async () => {
      const namespace = await context.namespace();
      const { body } = await context.client.post(`/api/v1/namespaces/${namespace}/secrets`, secret("one"));
      expect(body).toMatchObject({ type: "Opaque", data: { key: Buffer.from("value").toString("base64") } });
      expect(body.stringData).toBeUndefined();
    });

    it("labels a namespace with its name, and gives it the phase Active", async () => {
      const namespace = await context.namespace();
      const { body } = await context.client.get(`/api/v1/namespaces/${namespace}`);
      expect(body).toMatchObject({
        metadata: { labels: { "kubernetes.io/metadata.name": namespace } },
        spec: { finalizers: ["kubernetes"] },
        status: { phase: "Active" },
      });
    });

    it("refuses methods that a path does not have", async () => {
      const namespace = await context.namespace();
      expect((await context.client.post(`/api/v1/namespaces/${namespace}/configmaps/one`, configMap("one"))).code).toBe(405);
      expect((await context.client.put(`/api/v1/namespaces/${namespace}/configmaps`, configMap("one"))).code).toBe(405);
    });

    it("records the manager of each field", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      const { body } = await context.client.post(`${path}?fieldManager=tester`, configMap("one"));
      expect(body.metadata.managedFields).toMatchObject([
        {
          manager: "tester",
          operation: "Update",
          apiVersion: "v1",
          fieldsType: "FieldsV1",
          fieldsV1: { "f:data": { "f:key": {} } },
        },
      ]);
      const other = await context.client.post(path, configMap("two"), { userAgent: "agent/9.9 (linux)" });
      expect(other.body.metadata.managedFields[0].manager).toBe("agent");
    });
  });
}
