import { describe, expect, it } from "vitest";
import { mayChangeLabels } from "./object-labels.ts";

const may = (type: string, patch: unknown) =>
  mayChangeLabels(`application/${type}`, Buffer.from(typeof patch === "string" ? patch : JSON.stringify(patch)));
const MERGE = "merge-patch+json";
const STRATEGIC = "strategic-merge-patch+json";
const JSON_PATCH = "json-patch+json";

describe("mayChangeLabels", () => {
  it.each([MERGE, STRATEGIC])("is false for a %s of other fields, other metadata too", (type) => {
    expect(may(type, { spec: { labels: {} }, status: {} })).toBe(false);
    expect(may(type, { metadata: { annotations: { labels: "x" }, finalizers: ["a"] } })).toBe(false);
  });
  it.each([MERGE, STRATEGIC])("is true for a %s that names labels, or takes all metadata away", (type) => {
    expect(may(type, { metadata: { labels: { a: "b" } } })).toBe(true);
    expect(may(type, { metadata: { labels: null } })).toBe(true);
    expect(may(type, { metadata: null })).toBe(true);
    expect(may(type, '{"metadata":{},"metadata":{"labels":{}}}')).toBe(true);
  });
  it("is true for a directive that replaces what is beside it", () => {
    expect(may(STRATEGIC, { $patch: "replace", spec: {} })).toBe(true);
    expect(may(STRATEGIC, { metadata: { $patch: "delete" } })).toBe(true);
    expect(may(STRATEGIC, { spec: { $patch: "replace" } })).toBe(false);
  });
  it("goes by the paths of a JSON patch", () => {
    const op = (path: string, more: object = {}) => [{ op: "replace", path, ...more }];
    expect(may(JSON_PATCH, op("/spec/replicas"))).toBe(false);
    expect(may(JSON_PATCH, op("/metadata/labelsAndMore"))).toBe(false);
    for (const path of ["", "/metadata", "/metadata/labels", "/metadata/labels/a~1b"])
      expect(may(JSON_PATCH, op(path))).toBe(true);
    expect(may(JSON_PATCH, [{ op: "move", from: "/metadata/labels/a", path: "/spec/a" }])).toBe(true);
    expect(may(JSON_PATCH, [{ op: "copy", from: "/metadata/labels/a", path: "/spec/a" }])).toBe(false);
    expect(may(JSON_PATCH, [{ op: "test", path: "/metadata/labels/a", value: "b" }])).toBe(false);
  });
  it("is true for what it does not understand", () => {
    expect(may(JSON_PATCH, { op: "add" })).toBe(true);
    expect(may(JSON_PATCH, [{ op: "merge", path: "/spec" }, 5])).toBe(true);
    expect(may(MERGE, "{")).toBe(true);
    expect(may(MERGE, "[]")).toBe(true);
  });
  it("is true for every apply: what it does not name may go", () => {
    expect(may("apply-patch+yaml", { spec: {} })).toBe(true);
    expect(may("apply-patch+cbor", { spec: {} })).toBe(true);
  });
});
