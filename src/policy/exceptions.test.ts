import { expect, it } from "vitest";
import { limitRule, policyRequest, resourceRule } from "../../test/support/policies.ts";
import { createMatcher } from "./matcher.ts";
import type { RequestException } from "./policy.ts";

const OPERATOR = "system:serviceaccount:shop:operator";

function matches(except: readonly RequestException[], line: string, user = "") {
  const match = { resources: [resourceRule({ resources: ["pods"], verbs: ["delete"], except })], urls: [], http: [] };
  const matcher = createMatcher([limitRule({ kind: "deny" }, { match })]);
  const request = { ...policyRequest(line), user: () => user };
  // The second time the result is a remembered one.
  return [matcher.match(request).length, matcher.match(request).length].every((count) => count === 1);
}

const DELETE = "DELETE /api/v1/namespaces/a/pods/p";

it.each<[string, readonly RequestException[], string, boolean]>([
  ["a namespace", [{ namespaces: ["a"] }], DELETE, false],
  ["another namespace", [{ namespaces: ["b"] }], DELETE, true],
  ["a name", [{ names: ["p"] }], DELETE, false],
  ["a name, for an eviction", [{ names: ["p"] }], "POST /api/v1/namespaces/a/pods/p/eviction", false],
  ["a name, for a request that names no object", [{ names: ["p", ""] }], "DELETE /api/v1/namespaces/a/pods", true],
  ["a namespace, for all its objects", [{ namespaces: ["a"] }], "DELETE /api/v1/namespaces/a/pods", false],
  ["name and namespace of different objects", [{ namespaces: ["b"], names: ["p"] }], DELETE, true],
  ["one of two entries", [{ names: ["x"] }, { namespaces: ["a"] }], DELETE, false],
])("an exception for %s", (_, except, line, isMatch) => {
  expect(matches(except, line)).toBe(isMatch);
});

it("an exception for a user is about the caller", () => {
  expect(matches([{ users: [OPERATOR] }], DELETE, OPERATOR)).toBe(false);
  expect(matches([{ users: [OPERATOR] }], DELETE, "someone")).toBe(true);
  expect(matches([{ users: [OPERATOR] }], DELETE)).toBe(true);
});
