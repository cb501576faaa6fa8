import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { matchesSelector } from "../../kube/label-selector.ts";
import type { LabelSelector, LabelSelectorRequirement } from "../../kube/types.ts";
import { mayOverlap } from "./check-edit.ts";

const expressions = (...matchExpressions: LabelSelectorRequirement[]): LabelSelector => ({ matchExpressions });

describe("mayOverlap", () => {
  it.each<[string, LabelSelector, LabelSelector, boolean]>([
    ["other values of one key", { matchLabels: { a: "1" } }, { matchLabels: { a: "2" } }, false],
    ["other keys", { matchLabels: { a: "1" } }, { matchLabels: { b: "2" } }, true],
    [
      "a value and its exclusion",
      { matchLabels: { a: "1" } },
      expressions({ key: "a", operator: "NotIn", values: ["1"] }),
      false,
    ],
    ["a value and absence", { matchLabels: { a: "1" } }, expressions({ key: "a", operator: "DoesNotExist" }), false],
    [
      "presence and absence",
      expressions({ key: "a", operator: "Exists" }),
      expressions({ key: "a", operator: "DoesNotExist" }),
      false,
    ],
    [
      "lists that share a value",
      expressions({ key: "a", operator: "In", values: ["1", "2"] }),
      expressions({ key: "a", operator: "In", values: ["2", "3"] }),
      true,
    ],
    [
      "exclusions, which leave other values",
      expressions({ key: "a", operator: "NotIn", values: ["1"] }),
      expressions({ key: "a", operator: "Exists" }),
      true,
    ],
  ])("knows of %s", (_, a, b, expected) => {
    expect(mayOverlap(a, b)).toBe(expected);
    expect(mayOverlap(b, a)).toBe(expected);
  });

  it("is true exactly if some labels match both selectors", () => {
    const values = ["1", "2", "other"];
    const choices = [undefined, ...values];
    const allLabels = choices.flatMap((a) => choices.map((b) => ({ ...(a && { a }), ...(b && { b }) })));
    const requirement = fc
      .record({
        key: fc.constantFrom("a", "b"),
        operator: fc.constantFrom("In" as const, "NotIn" as const, "Exists" as const, "DoesNotExist" as const),
        values: fc.uniqueArray(fc.constantFrom("1", "2"), { minLength: 1 }),
      })
      .map(({ values: list, ...term }) => (term.operator.endsWith("In") ? { ...term, values: list } : term));
    const selector = fc.array(requirement, { maxLength: 4 }).map((matchExpressions) => ({ matchExpressions }));
    fc.assert(
      fc.property(selector, selector, (a, b) => {
        const exists = allLabels.some((labels) => matchesSelector(a, labels) && matchesSelector(b, labels));
        expect(mayOverlap(a, b)).toBe(exists);
      }),
    );
  });
});
