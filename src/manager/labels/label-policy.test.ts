import { expect, it } from "vitest";
import { nameHash } from "../../kube/place.ts";
import { labelPolicy, policyName, resourceOfPolicy } from "./label-policy.ts";

const FOOS = { group: "demo.ctrlmesh.io", resource: "foos" };

it("the name of a policy says its resource", () => {
  expect(policyName(FOOS)).toBe("ctrlmesh-labels-foos.demo.ctrlmesh.io");
  expect(resourceOfPolicy(policyName(FOOS))).toEqual(FOOS);
  expect(resourceOfPolicy(policyName({ group: "", resource: "pods" }))).toEqual({ group: "", resource: "pods" });
  expect(resourceOfPolicy("other")).toBeUndefined();
});

it("a policy matches its resource with its subresources, and nothing else", () => {
  const [rule, ...more] = labelPolicy(FOOS).spec.matchConstraints.resourceRules;
  expect(more).toEqual([]);
  expect(rule).toMatchObject({ apiGroups: ["demo.ctrlmesh.io"], resources: ["foos", "foos/*"], scope: "Namespaced" });
});

// test/nightly/labels.test.ts evaluates the expressions.
it("the letters of the CEL expression are at the places of their hashes", () => {
  const expression = labelPolicy(FOOS).spec.mutations[0]?.jsonPatch.expression ?? "";
  const [, letters = ""] = /'( a[^']*9)'/.exec(expression) ?? [];
  for (const letter of "abcdefghijklmnopqrstuvwxyz-0123456789") {
    expect([letter, letters.indexOf(letter) % 32]).toEqual([letter, nameHash(letter)]);
  }
});
