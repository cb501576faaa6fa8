import { describe, expect, it } from "vitest";
import { policyRequest, resourceRule } from "../../test/support/policies.ts";
import { createMatcher } from "./matcher.ts";
import type { ResourceRule, UrlRule } from "./policy.ts";

const matches = (rule: Partial<ResourceRule>, line: string) =>
  createMatcher([{ match: { resources: [resourceRule(rule)], urls: [], http: [] } }]).match(policyRequest(line)).length === 1;
const POD = "/api/v1/namespaces/a/pods/p";

describe("a rule about resources", () => {
  it.each<[Partial<ResourceRule>, string, boolean]>([
    [{}, `GET ${POD}`, true],
    [{ resources: ["pods"] }, `GET ${POD}`, true],
    [{ resources: ["pods"] }, `GET ${POD}/status`, false],
    [{ resources: ["pods/status"] }, `GET ${POD}/status`, true],
    [{ resources: ["pods/*"] }, `GET ${POD}/log`, true],
    [{ resources: ["pods/*"] }, `GET ${POD}`, false],
    [{ resources: ["*/status"] }, `PUT ${POD}/status`, true],
    [{ resources: ["*"] }, `PUT ${POD}/status`, true],
    [{ apiGroups: ["apps"] }, `GET ${POD}`, false],
    [{ apiGroups: [""] }, `GET ${POD}`, true],
    [{ verbs: ["delete"] }, `GET ${POD}`, false],
    [{ verbs: ["list"] }, "GET /api/v1/namespaces/a/pods", true],
    [{ verbs: ["list"] }, "GET /api/v1/namespaces/a/pods?watch=1", false],
    [{ namespaces: ["b"] }, `GET ${POD}`, false],
    [{ namespaces: ["b", "a"] }, `GET ${POD}`, true],
    [{ namespaces: ["*"], clusterScope: false }, "GET /api/v1/pods", false],
    [{ namespaces: ["*"], clusterScope: false }, "GET /api/v1/nodes/n", false],
    [{ namespaces: [], clusterScope: true }, "GET /api/v1/nodes/n", true],
    [{ namespaces: [], clusterScope: true }, "GET /api/v1/pods", true],
    [{ namespaces: [], clusterScope: true }, `GET ${POD}`, false],
    [{}, "GET /healthz", false],
  ])("%j: %s: %s", (rule, line, expected) => {
    expect(matches(rule, line)).toBe(expected);
  });

  it.each([`POST ${POD}/eviction`, "DELETE /api/v1/namespaces/a/pods", `DELETE ${POD}`])(
    "about deletes of pods is also about %s",
    (line) => {
      expect(matches({ resources: ["pods"], verbs: ["delete"] }, line)).toBe(true);
    },
  );

  it("about creates is not about an eviction of a pod", () => {
    expect(matches({ resources: ["pods"], verbs: ["create"] }, `POST ${POD}/eviction`)).toBe(false);
  });
});

describe("a rule about URLs", () => {
  it.each<[UrlRule, string, boolean]>([
    [{ url: "/healthz", methods: ["GET"] }, "GET /healthz", true],
    [{ url: "/healthz", methods: ["*"] }, "GET /healthz/etcd", false],
    [{ url: "/healthz/*", methods: ["*"] }, "GET /healthz/etcd", true],
    [{ url: "/healthz/*", methods: ["*"] }, "GET /healthzy", false],
    [{ url: "*", methods: ["*"] }, "GET /version", true],
    [{ url: "/*", methods: ["*"] }, "GET /version", true],
    [{ url: "/openapi/*", methods: ["POST"] }, "GET /openapi/v3/apis", false],
    [{ url: "/openapi/*", methods: ["GET"] }, "GET /openapi/v3/apis", true],
    [{ url: "*", methods: ["*"] }, `GET ${POD}`, false],
  ])("%j: %s: %s", (rule, line, expected) => {
    const found = createMatcher([{ match: { resources: [], urls: [rule], http: [] } }]).match(policyRequest(line));
    expect(found.length === 1).toBe(expected);
  });
});

it("every matching rule is found once, in the order of the set, however special it is", () => {
  const rules = [["*"], ["a", "*"], ["b"], ["a"]].map((namespaces) => ({
    namespaces,
    match: { resources: [resourceRule({ namespaces }), resourceRule({ namespaces, resources: ["pods"] })], urls: [], http: [] },
  }));
  const found = createMatcher(rules).match(policyRequest(`GET ${POD}`));
  expect(found.map(({ namespaces }) => namespaces)).toEqual([["*"], ["a", "*"], ["a"]]);
});
