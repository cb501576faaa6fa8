// Contract: Table and PartialObjectMetadata.
import { describe, expect, it } from "vitest";
import type { Body } from "./client.ts";
import { type Context, secret, WIDGETS, widget } from "./context.ts";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

export function describeTables(context: Context): void {
  async function place() {
    const namespace = await context.namespace();
    const path = `${WIDGETS}/namespaces/${namespace}/widgets`;
    await context.client.post(path, widget("one", { size: 7 }));
    return { namespace, path };
  }

  describe("tables and metadata", () => {
    it("shows a list with the printer columns of the definition", async () => {
      const { path } = await place();
      const { body } = await context.client.get(path, { accept: TABLE });
      expect(body).toMatchObject({
        kind: "Table",
        apiVersion: "meta.k8s.io/v1",
        metadata: { resourceVersion: expect.any(String) },
      });
      expect(body.columnDefinitions.map((column: Body) => column.name)).toEqual(["Name", "Size", "Age"]);
      expect(body.rows[0].cells).toEqual(["one", 7, expect.stringMatching(/^\d+s$/)]);
      expect(body.rows[0].object).toMatchObject({ kind: "PartialObjectMetadata", metadata: { name: "one" } });
    });

    it.each([
      ["None", undefined],
      ["Metadata", "PartialObjectMetadata"],
      ["Object", "Widget"],
    ])("includes the objects in rows as includeObject=%s asks", async (include, kind) => {
      const { path } = await place();
      const { body } = await context.client.get(`${path}?includeObject=${include}`, { accept: TABLE });
      expect(body.rows[0].object?.kind).toBe(kind);
    });

    it("shows one object as a table of one row", async () => {
      const { path } = await place();
      const { body } = await context.client.get(`${path}/one`, { accept: TABLE });
      expect(body).toMatchObject({ kind: "Table", rows: [{ cells: ["one", 7, expect.any(String)] }] });
    });

    it("sends the columns only with the first event of a watch", async () => {
      const { path } = await place();
      const watch = await context.client.watch(`${path}?watch=true`, { accept: TABLE });
      await watch.until(({ type }) => type === "ADDED");
      await context.client.post(path, widget("two"));
      const second = await watch.until(({ object }) => object.rows?.[0]?.cells[0] === "two");
      watch.close();
      expect(watch.events[0]?.object.columnDefinitions).toHaveLength(3);
      expect(second.object).toMatchObject({ kind: "Table", columnDefinitions: null });
    });

    it("shows built-in kinds as tables", async () => {
      const { namespace } = await place();
      await context.client.post(`/api/v1/namespaces/${namespace}/secrets`, secret("one"));
      const { body } = await context.client.get(`/api/v1/namespaces/${namespace}/secrets`, { accept: TABLE });
      const columns = body.columnDefinitions.map((column: Body) => column.name);
      expect(columns).toEqual(expect.arrayContaining(["Name", "Type", "Age"]));
      expect(body.rows[0].cells[columns.indexOf("Name")]).toBe("one");
    });

    it("shows objects as PartialObjectMetadata", async () => {
      const { path } = await place();
      const one = await context.client.get(`${path}/one`, { accept: PARTIAL });
      expect(one.body).toMatchObject({ kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: { name: "one" } });
      expect(one.body.spec).toBeUndefined();
      const list = await context.client.get(path, { accept: PARTIAL_LIST });
      expect(list.body).toMatchObject({
        kind: "PartialObjectMetadataList",
        apiVersion: "meta.k8s.io/v1",
        items: [{ metadata: { name: "one" } }],
      });
      const watch = await context.client.watch(`${path}?watch=true`, { accept: PARTIAL });
      expect((await watch.until(({ type }) => type === "ADDED")).object).toMatchObject({
        kind: "PartialObjectMetadata",
        metadata: { name: "one" },
      });
      watch.close();
    });
  });
}
