import { describe, expect, it } from "vitest";
import { z } from "zod";
import { formatProblem, validate } from "./problems.ts";
import { formatPath, withRules } from "./rule.ts";

const lines = (schema: z.ZodType, input: unknown) => {
  const result = validate(schema, input);
  return result.ok ? [] : result.problems.map(formatProblem);
};

describe("problems", () => {
  it("writes paths as Kubernetes does", () => {
    expect(formatPath(["spec", "subsets", 1, "routeRules", 0])).toBe("spec.subsets[1].routeRules[0]");
    expect(formatPath(["matchLabels", "app.kubernetes.io/name"])).toBe("matchLabels[app.kubernetes.io/name]");
    expect(formatPath([])).toBe("");
  });

  it("shows scalar values only, and shortens long ones", () => {
    expect(formatProblem({ path: "a", value: "x".repeat(500), message: "m" }).length).toBeLessThan(150);
    expect(lines(z.object({ a: z.string() }), { a: { secret: 1 } })).toEqual(["a: must be a string, not an object"]);
  });

  it("reports missing fields as required, and names types in plain words", () => {
    const schema = z.object({ a: z.string(), b: z.array(z.int()), c: z.boolean() });
    expect(lines(schema, { b: [1.5, null], c: "yes" })).toEqual([
      "a: required",
      "b[0]: 1.5: must be a whole number, not a fraction",
      "b[1]: must be a number, not null",
      'c: "yes": must be true or false, not a string',
    ]);
  });

  it("names the bound that is exceeded", () => {
    const schema = z.object({ port: z.int().min(1).max(65_535), name: z.string().min(3).max(5), list: z.array(z.int()).max(1) });
    expect(lines(schema, { port: 0, name: "abcdef", list: [1, 2] })).toEqual([
      "port: 0: must be at least 1",
      'name: "abcdef": must have at most 5 characters',
      "list: must have at most 1 items",
    ]);
  });

  it("names every unknown field, each with its nearest match", () => {
    const schema = z.object({ inner: z.strictObject({ selector: z.string(), route: z.string() }) });
    expect(lines(schema, { inner: { selector: "a", route: "b", selectr: 1, other: 2 } })).toEqual([
      'inner.selectr: unknown field; did you mean "selector"?',
      "inner.other: unknown field",
    ]);
  });

  it("runs the rules of nested schemas on the unchanged value, whatever other problems there are", () => {
    const seen: unknown[] = [];
    const inner = withRules(z.strictObject({ n: z.int() }), function* (value) {
      seen.push(value);
      yield { path: ["n"], message: "rule", value: 7 };
    });
    const schema = z.strictObject({ list: z.array(inner).optional().describe("x"), kept: z.unknown().optional() });
    expect(lines(schema, { list: [{ n: 0.5, odd: 1 }], extra: 1 })).toEqual([
      "list[0].n: 0.5: must be a whole number, not a fraction",
      "list[0].odd: unknown field",
      "extra: unknown field",
      "list[0].n: 7: rule",
    ]);
    expect(seen).toEqual([{ n: 0.5, odd: 1 }]);
  });

  it("keeps the rules of the schema that a schema was made from", () => {
    const first = withRules(z.string(), function* () {
      yield { path: [], message: "first" };
    });
    const second = withRules(first.describe("described"), function* () {
      yield { path: [], message: "second" };
    });
    expect(lines(first, "x")).toEqual(["first"]);
    expect(lines(second, "x")).toEqual(["first", "second"]);
  });

  it("does not check below a fallback", () => {
    const status = withRules(z.object({ n: z.int() }), function* () {
      yield { path: [], message: "never said" };
    });
    expect(validate(z.object({ status: status.optional().catch(undefined) }), { status: { n: "old" } })).toEqual({
      ok: true,
      value: { status: undefined },
    });
  });
});
