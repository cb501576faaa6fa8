import { expect, it } from "vitest";
import { egressRequest, limitRule, policyRequest, resourceRule } from "../../test/support/policies.ts";
import { withoutExempted } from "./exemptions.ts";
import { createMatcher } from "./matcher.ts";
import type { LimitRule, RequestMatch, ResourceRule } from "./policy.ts";
import type { PolicyRequest } from "./policy-request.ts";

const about = (...rules: Partial<ResourceRule>[]): RequestMatch => ({ resources: rules.map(resourceRule), urls: [], http: [] });
const deny = (name: string, match: RequestMatch, changes: Partial<LimitRule> = {}) =>
  limitRule({ kind: "deny" }, { name, match, ...changes });
const exempt = (name: string, match: RequestMatch, changes: Partial<LimitRule> = {}) =>
  limitRule({ kind: "exempt" }, { name, match, ...changes });

function namesOf(rules: readonly LimitRule[], request: string | PolicyRequest): string[] {
  const sent = typeof request === "string" ? policyRequest(request) : request;
  const matched = createMatcher(rules)
    .match(sent)
    .map((rule) => ({ rule }));
  return withoutExempted(matched, sent).map(({ rule }) => rule.origin.rule);
}

const DELETES = about({ apiGroups: [""], resources: ["pods"], verbs: ["delete"] });
const IN_A = about({ apiGroups: [""], resources: ["pods"], verbs: ["delete"], namespaces: ["a"], clusterScope: false });

it("an exemption for a namespace takes its requests out of the broad guard, and no others", () => {
  const rules = [deny("guard", DELETES), exempt("not-a", IN_A)];
  expect(namesOf(rules, "DELETE /api/v1/namespaces/a/pods/p")).toEqual(["not-a"]);
  expect(namesOf(rules, "POST /api/v1/namespaces/a/pods/p/eviction")).toEqual(["not-a"]);
  expect(namesOf(rules, "DELETE /api/v1/namespaces/b/pods/p")).toEqual(["guard"]);
});

it("a rule that is as specific as the exemption, or more so, still applies", () => {
  const rules = [deny("same", IN_A), exempt("all", about({})), exempt("broad", DELETES)];
  expect(namesOf(rules, "DELETE /api/v1/namespaces/a/pods/p")).toEqual(["same", "all", "broad"]);
});

it("rules of TrafficPolicies, where every rule applies, have no exemptions", () => {
  const origin = { ...deny("policy", DELETES).origin, kind: "TrafficPolicy" as const };
  const rules = [deny("policy", DELETES, { origin }), exempt("not-a", IN_A)];
  expect(namesOf(rules, "DELETE /api/v1/namespaces/a/pods/p")).toEqual(["policy", "not-a"]);
});

it("an exemption in the mode Shadow changes nothing", () => {
  const rules = [deny("guard", DELETES), exempt("not-a", IN_A, { mode: "Shadow" })];
  expect(namesOf(rules, "DELETE /api/v1/namespaces/a/pods/p")).toEqual(["guard", "not-a"]);
});

it("of URLs the longer one is more specific", () => {
  const url = (text: string): RequestMatch => ({ resources: [], urls: [{ url: text, methods: ["*"] }], http: [] });
  const rules = [deny("guard", url("https://a.example/*")), exempt("not-v1", url("https://a.example/v1/*"))];
  expect(namesOf(rules, egressRequest("GET https://a.example/v1/items"))).toEqual(["not-v1"]);
  expect(namesOf(rules, egressRequest("GET https://a.example/v2/items"))).toEqual(["guard"]);
});
