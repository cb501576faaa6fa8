import { describe, expect, it } from "vitest";
import { z } from "zod";
import { celRules, listMap } from "./extensions.ts";
import { toStructuralSchema } from "./structural-schema.ts";

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
