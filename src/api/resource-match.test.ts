import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatProblem, validate } from "./problems.ts";
import { createResourceIndex, pairCount, resourceMatchSchema } from "./resource-match.ts";

const problems = (match: unknown) => {
  const result = validate(resourceMatchSchema, match);
  return result.ok ? [] : result.problems.map(formatProblem);
};
const match = (apiGroups: string[], resources: string[]) => ({ apiGroups, resources });

describe("resource match", () => {
  it("accepts groups, the core group and wildcards", () => {
    expect(problems(match(["", "apps", "example.com", "*"], ["pods", "*"]))).toEqual([]);
  });

  it("refuses a kind instead of a resource, and a subresource with the name to write instead", () => {
    expect(problems(match([""], ["Pods"]))).toEqual([
      expect.stringContaining('resources[0]: "Pods": must be a plural resource name'),
    ]);
    expect(problems(match(["apps"], ["deployments/status"]))).toEqual([
      expect.stringMatching(/subresource.*write "deployments"$/),
    ]);
  });

  it("refuses empty lists, which would match nothing", () => {
    expect(problems(match([], []))).toEqual(["apiGroups: must not be empty", "resources: must not be empty"]);
  });
});

const names = fc.uniqueArray(fc.constantFrom("*", "a", "b", "c"), { maxLength: 2 });
const list = fc.array(fc.record({ apiGroups: names, resources: names }), { maxLength: 3 });
type List = readonly { readonly apiGroups: readonly string[]; readonly resources: readonly string[] }[];
const meet = (a: readonly string[], b: readonly string[]) =>
  a.some((left) => b.some((right) => left === "*" || right === "*" || left === right));
const overlap = (a: List, b: List) =>
  a.some((left) => b.some((right) => meet(left.apiGroups, right.apiGroups) && meet(left.resources, right.resources)));

it("finds the same first list with a common resource as a comparison of every two lists", () => {
  fc.assert(
    fc.property(fc.array(list, { maxLength: 5 }), list, (lists, one) => {
      const index = createResourceIndex<number>();
      for (const [at, each] of lists.entries()) index.add(each, at);
      const expected = lists.findIndex((each) => overlap(each, one));
      expect(index.firstOverlap(one)).toBe(expected === -1 ? undefined : expected);
    }),
    { numRuns: 1_000 },
  );
});

it("counts pairs of groups and resources, and returns 0 for a value that is no list of resources", () => {
  expect(
    pairCount([
      { apiGroups: ["", "apps"], resources: ["a", "b", "c"] },
      { apiGroups: ["*"], resources: ["*"] },
    ]),
  ).toBe(7);
  for (const odd of [undefined, 3, [null], [{ apiGroups: "x" }], [{ resources: ["a"] }]]) expect(pairCount(odd)).toBe(0);
});
