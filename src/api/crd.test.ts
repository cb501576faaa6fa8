import { describe, expect, it } from "vitest";
import { z } from "zod";
import { PHASES } from "./app-status.ts";
import { crdOf, KIND_NAMES, KINDS, type StructuralSchema, toStructuralSchema } from "./crd.ts";
import { celRules, listMap } from "./extensions.ts";

const rootOf = (kind: (typeof KIND_NAMES)[number]): StructuralSchema => {
  const schema = crdOf(kind).spec.versions[0]?.schema.openAPIV3Schema;
  if (schema === undefined) throw new Error("a CRD without a version");
  return schema;
};

/** Every schema in a schema, with its path. */
function* nodes(schema: StructuralSchema, path = "$"): Iterable<[string, StructuralSchema]> {
  yield [path, schema];
  for (const [name, inner] of Object.entries(schema.properties ?? {})) yield* nodes(inner, `${path}.${name}`);
  if (schema.items !== undefined) yield* nodes(schema.items, `${path}[]`);
  if (schema.additionalProperties !== undefined) yield* nodes(schema.additionalProperties, `${path}{}`);
}

describe("crdOf", () => {
  it("lists every kind", () => {
    expect([...KIND_NAMES].sort()).toEqual(Object.keys(KINDS).sort());
  });

  it("names VirtualApp with its short name", () => {
    const { metadata, spec } = crdOf("VirtualApp");
    expect(metadata.name).toBe("virtualapps.ctrlmesh.kruise.io");
    expect(spec.names).toMatchObject({
      kind: "VirtualApp",
      plural: "virtualapps",
      shortNames: ["vapp"],
      categories: ["ctrlmesh"],
    });
    expect(spec.scope).toBe("Namespaced");
    expect(crdOf("ManagerState").spec.scope).toBe("Cluster");
  });

  it("names ShardingConfig as KusionStack does", () => {
    const { metadata, spec } = crdOf("ShardingConfig");
    expect(metadata.name).toBe("shardingconfigs.ctrlmesh.kusionstack.io");
    expect(spec.names).toMatchObject({ kind: "ShardingConfig", plural: "shardingconfigs", shortNames: ["shard"] });
    expect(spec).toMatchObject({ group: "ctrlmesh.kusionstack.io", scope: "Namespaced", versions: [{ name: "v1alpha1" }] });
  });

  it("names the policy kinds as the two meshes do", () => {
    const names = (["TrafficPolicy", "CircuitBreaker", "FaultInjection"] as const).map((kind) => {
      const { metadata, spec } = crdOf(kind);
      return [metadata.name, spec.names.shortNames];
    });
    expect(names).toEqual([
      ["trafficpolicies.ctrlmesh.kruise.io", ["tp"]],
      ["circuitbreakers.ctrlmesh.kusionstack.io", ["cbk"]],
      ["faultinjections.ctrlmesh.kusionstack.io", ["fj"]],
    ]);
  });

  it("has the printer columns in order, those of -o wide last", () => {
    const columns = KINDS.VirtualApp.columns;
    expect(columns.map(({ name }) => name.toUpperCase())).toEqual(
      "READY REASON PROXIES SYNCED NAMESPACES MOVING WAITING-FOR WHY AGE FROZEN ROUTE MESSAGE".split(" "),
    );
    expect(columns.filter(({ priority }) => priority === 1).map(({ name }) => name)).toEqual(["Frozen", "Route", "Message"]);
    expect(KINDS.ShardingConfig.columns.map(({ name }) => name.toUpperCase())).toEqual(
      "FAMILY SHARD PODS NAMESPACES BALANCED READY REASON AGE MESSAGE".split(" "),
    );
  });

  it.each(KIND_NAMES)("bounds every list and every string of %s, so that its CEL rules have a bounded cost", (kind) => {
    const { apiVersion: _, kind: __, metadata: ___, ...fields } = rootOf(kind).properties ?? {};
    for (const [name, field] of Object.entries(fields)) {
      for (const [path, node] of nodes(field, name)) {
        if (node.type === "array") expect(node.maxItems, path).toBeGreaterThan(0);
        if (node.type === "string" && node.enum === undefined && node.format === undefined)
          expect(node.maxLength, path).toBeGreaterThan(0);
      }
    }
  });

  it.each(KIND_NAMES)("describes every field of %s", (kind) => {
    for (const [path, node] of nodes(rootOf(kind))) {
      if (/\.\w+$/.test(path) && !path.startsWith("$.metadata")) expect(node.description, path).toMatch(/\.$/);
    }
  });

  it.each(["VirtualApp", "ShardingConfig"] as const)("lists the phases of a handover of %s", (kind) => {
    const handover = rootOf(kind).properties?.status?.properties?.handover;
    expect(handover?.properties?.phase).toMatchObject({ type: "string", enum: [...PHASES] });
  });

  it("leaves metadata to the API server, except the length of the name", () => {
    for (const kind of ["VirtualApp", "ShardingConfig"] as const) {
      expect(rootOf(kind).properties?.metadata).toEqual({
        type: "object",
        properties: { name: { type: "string", maxLength: 63 } },
      });
    }
    expect(rootOf("ManagerState").properties?.metadata).toEqual({ type: "object" });
  });

  it("has an immutable selector, and subsets and rules as maps by name", () => {
    const spec = rootOf("VirtualApp").properties?.spec?.properties;
    expect(spec?.selector?.["x-kubernetes-validations"]).toContainEqual(expect.objectContaining({ rule: "self == oldSelf" }));
    for (const list of [spec?.subsets, spec?.route?.properties?.subRules]) {
      expect(list?.["x-kubernetes-list-map-keys"]).toEqual(["name"]);
    }
  });
});

describe("structural schema", () => {
  it("keeps descriptions and drops keywords that only zod has", () => {
    const schema = z.strictObject({ a: z.string().max(3).optional().describe("The a."), b: z.looseObject({}) });
    expect(toStructuralSchema(schema)).toEqual({
      type: "object",
      required: ["b"],
      properties: { a: { type: "string", maxLength: 3, description: "The a." }, b: { type: "object", properties: {} } },
    });
  });

  it("names the format of integers and drops the bounds of the type", () => {
    const schema = z.object({ big: z.int(), count: z.int().min(0).max(2_147_483_647), port: z.int().min(1).max(65_535) });
    expect(toStructuralSchema(schema).properties).toEqual({
      big: { type: "integer", format: "int64" },
      count: { type: "integer", minimum: 0, format: "int32" },
      port: { type: "integer", minimum: 1, maximum: 65_535, format: "int32" },
    });
  });

  it("converts maps, enums, dates and lists", () => {
    const schema = z.object({
      labels: z.record(z.string().max(3), z.string().max(9)),
      kind: z.enum(["A", "B"]),
      at: z.iso.datetime(),
      list: z
        .array(z.object({ name: z.string() }))
        .max(4)
        .meta(listMap("name")),
    });
    expect(toStructuralSchema(schema).properties).toEqual({
      labels: { type: "object", additionalProperties: { type: "string", maxLength: 9 } },
      kind: { type: "string", enum: ["A", "B"] },
      at: { type: "string", format: "date-time" },
      list: {
        type: "array",
        maxItems: 4,
        items: { type: "object", required: ["name"], properties: { name: { type: "string" } } },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
      },
    });
  });

  it("keeps CEL rules through optional and describe", () => {
    const rules = [{ rule: "self != ''", message: "not empty" }];
    const schema = z.object({
      a: z
        .string()
        .meta(celRules(...rules))
        .optional()
        .describe("The a."),
    });
    expect(toStructuralSchema(schema).properties?.a).toEqual({
      type: "string",
      description: "The a.",
      "x-kubernetes-validations": rules,
    });
  });

  it("treats fields with a default or a fallback as optional", () => {
    const schema = z.object({ a: z.string().default("x"), b: z.string().optional().catch(undefined) });
    expect(toStructuralSchema(schema)).toEqual({
      type: "object",
      properties: { a: { type: "string", default: "x" }, b: { type: "string" } },
    });
  });

  it("refuses a schema that a CRD cannot express, and names the place", () => {
    const union = z.object({ list: z.array(z.object({ a: z.union([z.string(), z.int()]) })) });
    expect(() => toStructuralSchema(union)).toThrow("converting the schema at $.list[].a");
    expect(() => toStructuralSchema(z.object({ a: z.string().nullable() }))).toThrow("converting the schema at $.a");
  });
});
