import { describe, expect, it } from "vitest";
import { formatProblem, validate } from "./problems.ts";
import { resourceMatchSchema } from "./resource-match.ts";

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
