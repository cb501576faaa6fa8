import { describe, expect, it } from "vitest";
import { formatAge } from "../represent.ts";
import { cellOf, valuesAt } from "./columns.ts";

const object = {
  spec: {
    size: 3,
    "a.b": "dotted",
    list: [
      { type: "Ready", status: "True" },
      { type: "Other", status: "False" },
    ],
  },
};

describe("printer columns", () => {
  it.each([
    [".spec.size", [3]],
    ["spec.size", [3]],
    [".spec['a.b']", ["dotted"]],
    [".spec.a\\.b", ["dotted"]],
    [".spec.list[0].type", ["Ready"]],
    [".spec.list[-1].type", ["Other"]],
    [".spec.list[*].status", ["True", "False"]],
    ['.spec.list[?(@.type=="Other")].status', ["False"]],
    [".spec.none.deep", []],
    [".spec[[", []],
  ])("read %s", (path, expected) => {
    expect(valuesAt(object, path)).toEqual(expected);
  });

  it("show values in the column's type, or nothing", () => {
    expect(cellOf(object, { name: "S", type: "integer", jsonPath: ".spec.size" })).toBe(3);
    expect(cellOf(object, { name: "S", type: "string", jsonPath: ".spec.size" })).toBe("3");
    expect(cellOf(object, { name: "S", type: "integer", jsonPath: ".spec.list" })).toBeNull();
  });

  it.each([
    [0, "0s"],
    [119_000, "119s"],
    [125_000, "2m5s"],
    [3_600_000, "60m"],
    [3 * 3_600_000, "3h"],
    [49 * 3_600_000, "2d1h"],
    [20 * 86_400_000, "20d"],
  ])("tell an age of %d ms as %s", (ms, text) => {
    expect(formatAge(ms)).toBe(text);
  });
});
