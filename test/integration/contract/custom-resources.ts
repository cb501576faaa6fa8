// Contract: custom resources: definitions, validation, pruning, status, generation, versions.
import { describe, expect, it } from "vitest";
import { type Body, eventually, MERGE_PATCH } from "./client.ts";
import { type Context, DEFINITIONS, definition, GROUP, install, WIDGETS, widget } from "./context.ts";

export function describeCustomResources(context: Context): void {
  async function place() {
    const namespace = await context.namespace();
    return `${WIDGETS}/namespaces/${namespace}/widgets`;
  }

  describe("custom resources", () => {
    it("accepts the names of a definition and reports the stored version", async () => {
      const { body } = await context.client.get(`${DEFINITIONS}/widgets.${GROUP}`);
      expect(body.status.acceptedNames).toMatchObject({
        plural: "widgets",
        singular: "widget",
        kind: "Widget",
        listKind: "WidgetList",
      });
      expect(body.status.storedVersions).toEqual(["v1"]);
      const types = body.status.conditions.map((item: Body) => `${item.type}=${item.status}`);
      expect(types).toEqual(expect.arrayContaining(["NamesAccepted=True", "Established=True"]));
    });

    it("refuses a definition with a name that does not match its plural and group", async () => {
      const body = { ...definition(), metadata: { name: "wrong.example.io" } };
      expect((await context.client.post(DEFINITIONS, body)).code).toBe(422);
    });

    it.each([
      ["a missing field", {}, "spec.size"],
      ["a wrong type", { size: "big" }, "spec.size"],
      ["a number below the minimum", { size: 0 }, "spec.size"],
      ["a number above the maximum", { size: 101 }, "spec.size"],
      ["a value outside the enum", { size: 1, color: "green" }, "spec.color"],
      ["a text that does not match the pattern", { size: 1, code: "A1" }, "spec.code"],
      ["a text that is too long", { size: 1, code: "abcdef" }, "spec.code"],
      ["too many items", { size: 1, tags: ["a", "b", "c"] }, "spec.tags"],
      ["a map with wrong values", { size: 1, labels: { a: 1 } }, "spec.labels.a"],
    ])("refuses %s", async (_what, spec, field) => {
      const { code, body } = await context.client.post(await place(), widget("one", spec));
      expect(code).toBe(422);
      expect(body).toMatchObject({ reason: "Invalid", details: { name: "one", group: GROUP, kind: "Widget" } });
      expect(body.details.causes.map((cause: Body) => cause.field)).toContain(field);
    });

    it("fills in defaults and drops unknown fields", async () => {
      const { code, body } = await context.client.post(
        await place(),
        widget("one", { size: 1, unknown: true, anything: { goes: [1] } }),
      );
      expect(code).toBe(201);
      expect(body.spec).toEqual({ size: 1, color: "red", anything: { goes: [1] } });
    });

    it("refuses unknown fields with fieldValidation=Strict", async () => {
      const { code, body } = await context.client.post(
        `${await place()}?fieldValidation=Strict`,
        widget("one", { size: 1, unknown: true }),
      );
      expect(code).toBe(400);
      expect(body.message).toContain('unknown field "spec.unknown"');
    });

    it("keeps spec and status apart, and counts changes of the spec as generations", async () => {
      const path = await place();
      const { body: created } = await context.client.post(path, { ...widget("one"), status: { ready: true } });
      expect(created.status).toBeUndefined();
      expect(created.metadata.generation).toBe(1);
      const { body: withStatus } = await context.client.put(`${path}/one/status`, {
        ...created,
        spec: { size: 50 },
        status: { ready: true },
      });
      expect(withStatus).toMatchObject({ spec: { size: 1 }, status: { ready: true }, metadata: { generation: 1 } });
      const { body: grown } = await context.client.patch(`${path}/one`, MERGE_PATCH, {
        spec: { size: 2 },
        status: { ready: false },
      });
      expect(grown).toMatchObject({ spec: { size: 2 }, status: { ready: true }, metadata: { generation: 2 } });
      const { body: labelled } = await context.client.patch(`${path}/one`, MERGE_PATCH, { metadata: { labels: { a: "b" } } });
      expect(labelled.metadata.generation).toBe(2);
      const { body: patched } = await context.client.patch(`${path}/one/status`, MERGE_PATCH, {
        metadata: { labels: { a: "c" } },
        status: { ready: false },
      });
      expect(patched).toMatchObject({ metadata: { labels: { a: "b" } }, status: { ready: false } });
      expect((await context.client.get(`${path}/one/status`)).body.status).toEqual({ ready: false });
    });

    it("serves an object in each version", async () => {
      const path = await place();
      await context.client.post(path, widget("one"));
      const { body } = await context.client.get(`${path.replace("/v1/", "/v1beta1/")}/one`);
      expect(body).toMatchObject({ apiVersion: `${GROUP}/v1beta1`, spec: { size: 1 } });
      const list = await context.client.get(path.replace("/v1/", "/v1beta1/"));
      expect(list.body).toMatchObject({ apiVersion: `${GROUP}/v1beta1`, kind: "WidgetList" });
    });

    it("refuses a body of another version, and a body without a kind", async () => {
      const path = await place();
      expect((await context.client.post(path, { ...widget("one"), apiVersion: `${GROUP}/v9` })).code).toBe(400);
      expect((await context.client.post(path, { metadata: { name: "one" }, spec: { size: 1 } })).code).toBe(400);
    });

    it("deletes objects together with their definition", async () => {
      await install(context.client, definition("gadgets", "Gadget"));
      const namespace = await context.namespace();
      const path = `${WIDGETS}/namespaces/${namespace}/gadgets`;
      expect((await context.client.post(path, { ...widget("one"), kind: "Gadget" })).code).toBe(201);
      await context.client.delete(`${DEFINITIONS}/gadgets.${GROUP}`);
      await eventually(async () => {
        expect((await context.client.get(`${DEFINITIONS}/gadgets.${GROUP}`)).code).toBe(404);
        expect((await context.client.get(path)).code).toBe(404);
      });
    });
  });
}
