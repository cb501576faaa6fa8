import { describe, expect, expectTypeOf, it } from "vitest";
import type { LabelSelector as KubeLabelSelector, LabelSelectorRequirement as KubeRequirement } from "../kube/types.ts";
import {
  countTerms,
  type LabelSelector,
  type LabelSelectorRequirement,
  labelSelectorSchema,
  nonEmptySelector,
} from "./label-selector.ts";
import { formatProblem, validate } from "./problems.ts";

const problems = (selector: unknown, schema = labelSelectorSchema) => {
  const result = validate(schema, selector);
  return result.ok ? [] : result.problems.map(formatProblem);
};

describe("label selector", () => {
  it("infers a type that is assignable to the one in src/kube", () => {
    expectTypeOf<LabelSelector>().toExtend<KubeLabelSelector>();
    expectTypeOf<KubeLabelSelector>().toExtend<LabelSelector>();
    expectTypeOf<LabelSelectorRequirement>().toExtend<KubeRequirement>();
  });

  it("accepts all four operators", () => {
    const matchExpressions = [
      { key: "a", operator: "In", values: ["x", ""] },
      { key: "b", operator: "NotIn", values: ["y"] },
      { key: "c", operator: "Exists" },
      { key: "d", operator: "DoesNotExist", values: [] },
    ];
    expect(problems({ matchLabels: { "app.kubernetes.io/name": "shop" }, matchExpressions })).toEqual([]);
    expect(problems({})).toEqual([]);
  });

  it("requires values for In and NotIn, and refuses them for the other operators", () => {
    expect(problems({ matchExpressions: [{ key: "a", operator: "NotIn" }] })).toEqual([
      "matchExpressions[0].values: required: NotIn needs at least one value",
    ]);
    expect(problems({ matchExpressions: [{ key: "a", operator: "Exists", values: ["x"] }] })).toEqual([
      "matchExpressions[0].values: must not be set: Exists takes no values",
    ]);
  });

  it("names the operators and the nearest one for a misspelt operator", () => {
    expect(problems({ matchExpressions: [{ key: "a", operator: "notin", values: ["x"] }] })).toEqual([
      'matchExpressions[0].operator: "notin": must be one of "In", "NotIn", "Exists", "DoesNotExist"; did you mean "NotIn"?',
    ]);
    expect(problems({ matchExpressions: [{ key: "a" }] })).toEqual([
      'matchExpressions[0].operator: required: must be one of "In", "NotIn", "Exists", "DoesNotExist"',
    ]);
  });

  it("refuses invalid keys and values", () => {
    expect(problems({ matchLabels: { "a b": "c d" } })).toEqual([
      expect.stringMatching(/^matchLabels\[a b\]: "c d": must be a label value/),
      expect.stringMatching(/^matchLabels: "a b": must be a label key/),
    ]);
  });

  it("refuses a key that zod would drop, since that would widen the selector", () => {
    expect(problems(JSON.parse('{"matchLabels":{"__proto__":"x","a":"b"}}'))).toEqual([
      expect.stringContaining('matchLabels: "__proto__": must be a label key'),
    ]);
  });

  it("refuses more labels than the CRD allows", () => {
    const matchLabels = Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`k${index}`, "v"]));
    expect(problems({ matchLabels })).toEqual(["matchLabels: must have at most 32 entries"]);
  });

  it("can require at least one term", () => {
    for (const empty of [{}, { matchLabels: {} }, { matchExpressions: [] }]) {
      expect(problems(empty, nonEmptySelector())).toEqual(["must have at least one term: an empty selector matches everything"]);
    }
    expect(problems({ matchExpressions: [{ key: "a", operator: "Exists" }] }, nonEmptySelector())).toEqual([]);
    expect(problems(undefined, nonEmptySelector())).toEqual(["required"]);
  });

  it("counts terms, also of an invalid selector", () => {
    expect(countTerms({ matchLabels: { a: "b", c: "d" }, matchExpressions: [{}] })).toBe(3);
    expect(countTerms({ matchLabels: 5, matchExpressions: null })).toBe(0);
    expect(countTerms(undefined)).toBe(0);
  });
});
