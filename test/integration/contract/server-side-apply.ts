// Contract: server-side apply.
import { describe, expect, it } from "vitest";
import { APPLY_PATCH, type Body, MERGE_PATCH } from "./client.ts";
import { type Context, configMap, WIDGETS, widget } from "./context.ts";

export function describeApply(context: Context): void {
  describe("server-side apply", () => {
    async function place() {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/configmaps/one`;
      const apply = (manager: string, data: Body, query = "") =>
        context.client.patch(`${path}?fieldManager=${manager}${query}`, APPLY_PATCH, configMap("one", { data }));
      return { namespace, path, apply };
    }

    it("creates a missing object and records the manager of its fields", async () => {
      const { apply } = await place();
      const { code, body } = await apply("first", { a: "1" });
      expect(code).toBe(201);
      expect(body).toMatchObject({ data: { a: "1" }, metadata: { managedFields: [{ manager: "first", operation: "Apply" }] } });
    });

    it("reads YAML and requires a field manager", async () => {
      const { path } = await place();
      const yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: '1'\n";
      expect((await context.client.patch(path, APPLY_PATCH, yaml)).code).toBe(422);
      expect((await context.client.patch(`${path}?fieldManager=m`, APPLY_PATCH, yaml)).body.data).toEqual({ a: "1" });
    });

    it("removes the fields that their manager leaves out, and keeps the fields of other managers", async () => {
      const { path, apply } = await place();
      await apply("first", { a: "1", b: "2" });
      await context.client.patch(`${path}?fieldManager=other`, MERGE_PATCH, { data: { c: "3" } });
      const { code, body } = await apply("first", { a: "1" });
      expect(code).toBe(200);
      expect(body.data).toEqual({ a: "1", c: "3" });
    });

    it("keeps a field of two managers until both leave it out", async () => {
      const { apply } = await place();
      await apply("first", { a: "1", b: "2" });
      await apply("second", { b: "2" });
      expect((await apply("first", { a: "1" })).body.data).toEqual({ a: "1", b: "2" });
      expect((await apply("second", {})).body.data).toEqual({ a: "1" });
    });

    it("refuses to change another manager's field without force", async () => {
      const { apply } = await place();
      await apply("first", { a: "1" });
      const refused = await apply("second", { a: "2" });
      expect(refused).toMatchObject({
        code: 409,
        body: { reason: "Conflict", details: { causes: [{ reason: "FieldManagerConflict", field: ".data.a" }] } },
      });
      expect(refused.body.message).toContain('conflict with "first"');
      const forced = await apply("second", { a: "2" }, "&force=true");
      expect(forced).toMatchObject({ code: 200, body: { data: { a: "2" } } });
      expect(forced.body.metadata.managedFields.map((entry: Body) => entry.manager)).toEqual(["second"]);
    });

    it("keeps the resourceVersion when the same object is applied again", async () => {
      const { apply } = await place();
      const first = await apply("first", { a: "1" });
      const again = await apply("first", { a: "1" });
      expect(again.body.metadata.resourceVersion).toBe(first.body.metadata.resourceVersion);
    });

    it("merges keyed lists of custom resources through the status subresource", async () => {
      const { namespace } = await place();
      const path = `${WIDGETS}/namespaces/${namespace}/widgets`;
      await context.client.post(path, widget("one"));
      const apply = (manager: string, conditions: Body) =>
        context.client.patch(`${path}/one/status?fieldManager=${manager}`, APPLY_PATCH, {
          apiVersion: widget("one").apiVersion,
          kind: "Widget",
          metadata: { name: "one" },
          status: { conditions },
        });
      await apply("first", [{ type: "A", status: "True" }]);
      const { body } = await apply("second", [{ type: "B", status: "False" }]);
      expect(body.status.conditions).toEqual([
        { type: "A", status: "True" },
        { type: "B", status: "False" },
      ]);
      expect((await apply("first", [])).body.status.conditions).toEqual([{ type: "B", status: "False" }]);
    });
  });
}
