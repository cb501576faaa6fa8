// Contract: JSON patch, merge patch, strategic merge patch.
import { describe, expect, it } from "vitest";
import { JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH } from "./client.ts";
import { type Context, configMap, WIDGETS, widget } from "./context.ts";

export function describePatches(context: Context): void {
  async function stored(metadata = {}) {
    const namespace = await context.namespace();
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const { body } = await context.client.post(path, configMap("one", { data: { a: "1", b: "2" }, ...metadata }));
    return { path: `${path}/one`, body, namespace };
  }

  describe("patches", () => {
    it("sets, adds and removes fields by a merge patch, with null to remove", async () => {
      const { path } = await stored();
      const { code, body } = await context.client.patch(path, MERGE_PATCH, {
        data: { a: null, b: "3", c: "4" },
        metadata: { labels: { x: "y" } },
      });
      expect(code).toBe(200);
      expect(body.data).toEqual({ b: "3", c: "4" });
      expect(body.metadata.labels).toEqual({ x: "y" });
    });

    it("applies the operations of a JSON patch in order", async () => {
      const { path } = await stored();
      const operations = [
        { op: "test", path: "/data/a", value: "1" },
        { op: "replace", path: "/data/a", value: "9" },
        { op: "remove", path: "/data/b" },
        { op: "add", path: "/metadata/annotations", value: {} },
        { op: "add", path: "/metadata/annotations/example.io~1key", value: "v" },
      ];
      const { code, body } = await context.client.patch(path, JSON_PATCH, operations);
      expect(code).toBe(200);
      expect(body.data).toEqual({ a: "9" });
      expect(body.metadata.annotations).toEqual({ "example.io/key": "v" });
    });

    it("refuses a JSON patch with a failing test operation, and changes nothing", async () => {
      const { path, body: before } = await stored();
      const operations = [
        { op: "replace", path: "/data/a", value: "9" },
        { op: "test", path: "/data/b", value: "no" },
      ];
      expect((await context.client.patch(path, JSON_PATCH, operations)).code).toBe(422);
      expect((await context.client.get(path)).body.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
    });

    it("refuses a patch that names an older version than the stored one", async () => {
      const { path, body } = await stored();
      const fresh = await context.client.patch(path, MERGE_PATCH, {
        metadata: { resourceVersion: body.metadata.resourceVersion },
        data: { a: "2" },
      });
      expect(fresh.code).toBe(200);
      const stale = await context.client.patch(path, MERGE_PATCH, {
        metadata: { resourceVersion: body.metadata.resourceVersion },
        data: { a: "3" },
      });
      expect(stale).toMatchObject({ code: 409, body: { reason: "Conflict" } });
    });

    it("merges lists by key in a strategic patch", async () => {
      const { body, namespace } = await stored();
      const owner = { apiVersion: "v1", kind: "ConfigMap", name: "one", uid: body.metadata.uid };
      const second = `/api/v1/namespaces/${namespace}/configmaps/two`;
      await context.client.post(`/api/v1/namespaces/${namespace}/configmaps`, configMap("two", { ownerReferences: [owner] }));
      const patched = await context.client.patch(second, STRATEGIC_PATCH, {
        metadata: { ownerReferences: [{ uid: owner.uid, blockOwnerDeletion: true }] },
      });
      expect(patched.body.metadata.ownerReferences).toEqual([{ ...owner, blockOwnerDeletion: true }]);
      const removed = await context.client.patch(second, STRATEGIC_PATCH, {
        metadata: { ownerReferences: [{ $patch: "delete", uid: owner.uid }] },
      });
      expect(removed.body.metadata.ownerReferences).toBeUndefined();
    });

    it("refuses a strategic patch of a custom resource, and a patch of an unknown type", async () => {
      const { path, namespace } = await stored();
      await context.client.post(`${WIDGETS}/namespaces/${namespace}/widgets`, widget("one"));
      expect(
        (await context.client.patch(`${WIDGETS}/namespaces/${namespace}/widgets/one`, STRATEGIC_PATCH, { spec: { size: 2 } }))
          .code,
      ).toBe(415);
      expect((await context.client.patch(path, "application/json", { data: {} })).code).toBe(415);
    });

    it("answers 404 for a patch of a missing object, and keeps the resourceVersion when a patch changes nothing", async () => {
      const { path, body } = await stored();
      expect((await context.client.patch(`${path}-none`, MERGE_PATCH, {})).code).toBe(404);
      const same = await context.client.patch(path, MERGE_PATCH, { data: { a: "1" } });
      expect(same.body.metadata.resourceVersion).toBe(body.metadata.resourceVersion);
    });
  });
}
