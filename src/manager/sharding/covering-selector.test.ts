import fc from "fast-check";
import { expect, it } from "vitest";
import { matchesSelector } from "../../kube/label-selector.ts";
import { coveringSelector } from "./covering-selector.ts";

const POD = "statefulset.kubernetes.io/pod-name";
const podIn = (...values: string[]) => ({ matchExpressions: [{ key: POD, operator: "In" as const, values }] });

it("has the values of all selectors, for the keys that all restrict", () => {
  const labelled = { ...podIn("op-0"), matchLabels: { app: "op" } };
  expect(coveringSelector([labelled, podIn("op-1", "op-2")])).toEqual(podIn("op-0", "op-1", "op-2"));
  expect(coveringSelector([{ matchLabels: { app: "op" } }])).toEqual({
    matchExpressions: [{ key: "app", operator: "In", values: ["op"] }],
  });
});

it("is undefined if there is no common key", () => {
  expect(coveringSelector([{ matchLabels: { a: "1" } }, { matchLabels: { b: "1" } }])).toBeUndefined();
  expect(coveringSelector([{ matchExpressions: [{ key: "a", operator: "Exists" }] }])).toBeUndefined();
});

it("matches each pod that one of the selectors matches", () => {
  const selector = fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom("1", "2"), { minKeys: 1 });
  fc.assert(
    fc.property(fc.array(selector, { minLength: 1, maxLength: 3 }), selector, (all, labels) => {
      const selectors = all.map((matchLabels) => ({ matchLabels }));
      const covering = coveringSelector(selectors);
      fc.pre(covering !== undefined && selectors.some((each) => matchesSelector(each, labels)));
      expect(matchesSelector(covering, labels)).toBe(true);
    }),
  );
});
