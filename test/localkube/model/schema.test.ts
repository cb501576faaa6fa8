import { describe, expect, it } from "vitest";
import { applyDefaults, prune, type Schema, validate } from "./schema.ts";

const SCHEMA: Schema = {
  type: "object",
  properties: {
    metadata: { type: "object" },
    spec: {
      type: "object",
      required: ["size"],
      properties: {
        size: { type: "integer", minimum: 1, maximum: 3 },
        port: { "x-kubernetes-int-or-string": true },
        note: { type: "string", nullable: true },
        list: { type: "array", items: { type: "object", properties: { a: { type: "string", default: "x" } } } },
        free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
      },
    },
  },
};

describe("structural schemas", () => {
  it("prune unknown fields, but never the envelope", () => {
    const value = {
      kind: "A",
      apiVersion: "b",
      metadata: { labels: {} },
      extra: 1,
      spec: { size: 1, kind: "x", list: [{ a: "1", b: 2 }], free: { z: 1 } },
    };
    expect(prune(value, SCHEMA)).toEqual(["extra", "spec.kind", "spec.list[0].b"]);
    expect(value).toEqual({
      kind: "A",
      apiVersion: "b",
      metadata: { labels: {} },
      spec: { size: 1, list: [{ a: "1" }], free: { z: 1 } },
    });
  });

  it("fill in defaults, also inside lists", () => {
    const value = { spec: { list: [{}, { a: "y" }] } };
    applyDefaults(value, SCHEMA);
    expect(value.spec.list).toEqual([{ a: "x" }, { a: "y" }]);
  });

  it("report every problem with its field", () => {
    const problems = validate({ spec: { size: 9, port: 1.5, note: null, list: "no" } }, SCHEMA);
    expect(problems.map(({ field, reason }) => `${field} ${reason}`)).toEqual([
      "spec.size FieldValueInvalid",
      "spec.port FieldValueTypeInvalid",
      "spec.list FieldValueTypeInvalid",
    ]);
    expect(validate({ spec: {} }, SCHEMA)).toMatchObject([{ field: "spec.size", reason: "FieldValueRequired" }]);
    expect(validate({ spec: { size: 2, port: "http" } }, SCHEMA)).toEqual([]);
  });
});
