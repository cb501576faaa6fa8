import { describe, expect, it } from "vitest";
import { egressRequest, policyRequest, resourceRule } from "../../test/support/policies.ts";
import { createMatcher } from "./matcher.ts";
import type { HttpRule, ResourceRule, UrlRule } from "./policy.ts";

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

  it.each([
    ["nodes/proxy", "GET /api/v1/nodes/n1/proxy/metrics"],
    ["nodes/proxy", "POST /api/v1/nodes/n1/proxy/run/ns/pod/c?cmd=id"],
    ["pods/proxy", `GET ${POD}/proxy/admin`],
    ["services/proxy", "PUT /api/v1/namespaces/a/services/http:web:80/proxy/v1/x"],
    ["*/proxy", `GET ${POD}/proxy/a/b`],
    ["nodes/*", "GET /api/v1/nodes/n1/proxy/metrics"],
  ])("about %s is about %s, whatever follows the subresource (D1)", (resource, line) => {
    expect(matches({ resources: [resource] }, line)).toBe(true);
    expect(matches({ resources: ["pods", "nodes", "services", "pods/exec"] }, line)).toBe(false);
  });

  it.each<[Partial<ResourceRule>, string, boolean]>([
    [{ namespaces: [], clusterScope: true }, "DELETE /api/v1/namespaces/prod", true],
    [{ namespaces: [], clusterScope: true }, "PUT /api/v1/namespaces/prod/finalize", true],
    [{ namespaces: ["prod"], clusterScope: false }, "DELETE /api/v1/namespaces/prod", true],
    [{ namespaces: ["*"], clusterScope: false }, "DELETE /api/v1/namespaces/prod", true],
    [{ namespaces: ["other"], clusterScope: false }, "DELETE /api/v1/namespaces/prod", false],
    [{ namespaces: [], clusterScope: true }, "POST /api/v1/namespaces", true],
    [{ namespaces: [], clusterScope: true }, "DELETE /api/v1/namespaces/prod/pods/p", false],
    [{ namespaces: [], clusterScope: true }, "DELETE /apis/a.example/v1/namespaces/prod/namespaces/x", false],
  ])("%j: a Namespace is cluster-scoped and has its own name: %s: %s (D12)", (rule, line, expected) => {
    expect(matches({ resources: ["*"], ...rule }, line)).toBe(expected);
    expect(matches({ resources: ["namespaces", "namespaces/finalize", "pods"], ...rule }, line)).toBe(expected);
  });

  it("about creates is not about an eviction of a pod", () => {
    expect(matches({ resources: ["pods"], verbs: ["create"] }, `POST ${POD}/eviction`)).toBe(false);
  });
});

describe("a rule about URLs", () => {
  it.each<[UrlRule, string, boolean]>([
    [{ url: "/healthz", methods: ["GET"] }, "GET /healthz", true],
    [{ url: "/healthz", methods: ["POST"] }, "GET /healthz/etcd", false],
    [{ url: "/healthz/*", methods: ["*"] }, "GET /healthz/etcd", true],
    [{ url: "/healthz/*", methods: ["*"] }, "GET /healthzy", false],
    [{ url: "*", methods: ["*"] }, "GET /version", true],
    [{ url: "/*", methods: ["*"] }, "GET /version", true],
    [{ url: "/openapi/*", methods: ["POST"] }, "GET /openapi/v3/apis", false],
    [{ url: "/openapi/*", methods: ["GET"] }, "GET /openapi/v3/apis", true],
    [{ url: "*", methods: ["*"] }, `GET ${POD}`, false],
    [{ url: "/", methods: ["*"] }, "GET /version", true],
    [{ url: "/*", methods: ["*"] }, "GET /", true],
    [{ url: "/healthz", methods: ["*"] }, "GET /healthzy", false],
    [{ url: "/debug/*", methods: ["*"] }, "GET /debug", true],
    [{ url: "/debug/*", methods: ["*"] }, "GET /debugger", false],
  ])("%j: %s: %s", (rule, line, expected) => {
    const found = createMatcher([{ match: { resources: [], urls: [rule], http: [] } }]).match(policyRequest(line));
    expect(found.length === 1).toBe(expected);
  });
});

describe("the spelling of a path", () => {
  const found = (url: string, line: string) => {
    const matcher = createMatcher([{ match: { resources: [], urls: [{ url, methods: ["*"] }], http: [] } }]);
    return matcher.match(url.startsWith("/") ? policyRequest(line) : egressRequest(line)).length === 1;
  };

  it.each([
    ["/metrics", "GET /metrics"],
    ["/metrics", "GET /%6detrics"],
    ["/metrics", "GET /metrics/"],
    ["/metrics/", "GET /metrics"],
    ["/%6Detrics", "GET /metrics"],
    ["/metrics", "GET /metrics/slis"],
    ["/debug/*", "GET /%64ebug/pprof"],
    ["/debug/*", "GET /debug/"],
    ["/caf\u00e9", "GET /caf%C3%a9"],
  ])("does not lead around a rule about %s: %s (D5)", (url, line) => expect(found(url, line)).toBe(true));

  it.each([
    ["http://a.example/v1/*", "GET http://a.example/%76%31/x"],
    ["http://a.example/v1/*", "GET http://a.example//v1/x"],
    ["http://a.example/v1/*", "GET http://a.example/v1//x/"],
    ["http://a.example/v1/*", "GET http://a.example/v1"],
    ["http://a.example/%761//*", "GET http://a.example/v1/x"],
    ["http://a.example/v1", "GET http://a.example/v1/"],
    ["http://a.example/v1?x=a", "GET http://a.example/v1?%78=%61"],
    ["http://a.example/caf\u00e9", "GET http://a.example/caf%c3%a9"],
    ["http://a.example/v1/*", "GET http://a.example/v1%2Fx"],
    ["http://a.example/v1%2fx", "GET http://a.example/v1%2Fx"],
  ])("does not lead around a rule about %s: %s (D23)", (url, line) => expect(found(url, line)).toBe(true));

  it.each([
    ["/metrics", "GET /%256detrics"],
    ["http://a.example/v1/*", "GET http://a.example/%2576%2531/x"],
    ["http://a.example/v1/x", "GET http://a.example/v1%252Fx"],
    ["http://a.example/v1?x=a", "GET http://a.example/v1?x%3Da"],
    ["http://a.example/v1?x=a&y=b", "GET http://a.example/v1?x=a%26y=b"],
    ["http://a.example/v1", "GET http://a.example/v1/x"],
    ["http://a.example/v1", "GET http://a.example/V1"],
  ])("makes no other path of it: %s is not about %s", (url, line) => expect(found(url, line)).toBe(false));
});

it("every matching rule is found once, in the order of the set, however special it is", () => {
  const rules = [["*"], ["a", "*"], ["b"], ["a"]].map((namespaces) => ({
    namespaces,
    match: { resources: [resourceRule({ namespaces }), resourceRule({ namespaces, resources: ["pods"] })], urls: [], http: [] },
  }));
  const found = createMatcher(rules).match(policyRequest(`GET ${POD}`));
  expect(found.map(({ namespaces }) => namespaces)).toEqual([["*"], ["a", "*"], ["a"]]);
});

describe("a rule about URLs of other servers", () => {
  it.each<[UrlRule, string, boolean]>([
    [{ url: "https://a.example/v1", methods: ["GET"] }, "GET https://a.example/v1", true],
    [{ url: "https://A.example:443/v1", methods: ["GET"] }, "GET https://a.example/v1?x=1", true],
    [{ url: "https://a.example/V1", methods: ["GET"] }, "GET https://a.example/v1", false],
    [{ url: "https://a.example/v1?x=1", methods: ["GET"] }, "GET https://a.example/v1?x=1", true],
    [{ url: "https://a.example/v1?x=1", methods: ["GET"] }, "GET https://a.example/v1?x=2", false],
    [{ url: "https://a.example/v1", methods: ["POST"] }, "GET https://a.example/v1", false],
    [{ url: "https://a.example/v1/*", methods: ["*"] }, "GET https://a.example/v1/x/y", true],
    [{ url: "https://a.example/*", methods: ["*"] }, "GET https://a.example:8443/v1", false],
    [{ url: "https://a.example", methods: ["*"] }, "GET https://a.example/", true],
    [{ url: "http://a.example/*", methods: ["*"] }, "GET https://a.example/v1", false],
    [{ url: "https://*", methods: ["*"] }, "CONNECT a.example:443", true],
    [{ url: "https://a.example", methods: ["CONNECT"] }, "CONNECT a.example:443", true],
    [{ url: "https://a.example/*", methods: ["GET"] }, "CONNECT a.example:443", false],
    [{ url: "*", methods: ["*"] }, "GET http://a.example/healthz", false],
    [{ url: "/*", methods: ["*"] }, "GET http://a.example/healthz", false],
    [{ url: "/healthz", methods: ["*"] }, "GET http://a.example/healthz", false],
  ])("%j: %s: %s", (rule, line, expected) => {
    const found = createMatcher([{ match: { resources: [], urls: [rule], http: [] } }]).match(egressRequest(line));
    expect(found.length === 1).toBe(expected);
  });

  it("is about no request to the API server", () => {
    const match = { resources: [], urls: [], http: [{ headers: [] }] };
    expect(createMatcher([{ match }]).match(policyRequest("GET /healthz"))).toEqual([]);
  });
});

describe("a rule about HTTP requests to other servers", () => {
  it.each<[Partial<HttpRule>, string, boolean]>([
    [{}, "GET http://a.example/", true],
    [{}, "CONNECT a.example:443", true],
    [{ host: { exact: "a.example" } }, "CONNECT a.example:443", true],
    [{ host: { exact: "a.example" } }, "GET http://b.example/", false],
    [{ host: { regex: "[.]example$" } }, "GET http://b.example/", true],
    [{ host: { regex: "[.]example$" } }, "GET http://b.example.org/", false],
    [{ host: { exact: "a.example" }, port: 8443 }, "CONNECT a.example:8443", true],
    [{ host: { exact: "a.example" }, port: 8443 }, "CONNECT a.example:443", false],
    [{ host: { regex: "^a[.]example:8443$" } }, "GET http://a.example:8443/", true],
    [{ host: { regex: "^a[.]example:8443$" } }, "GET http://a.example/", false],
    [{ host: { exact: "a.example:8443" } }, "GET http://a.example:8443/", false],
    [{ path: { exact: "/v1" } }, "GET http://a.example/v1?x=1", true],
    [{ path: { regex: "^/v1" } }, "GET http://a.example/v2", false],
    [{ path: { regex: "" } }, "CONNECT a.example:443", false],
    [{ method: "GET" }, "GET http://a.example/", true],
    [{ method: "GET" }, "CONNECT a.example:443", false],
    [{ headers: [{ name: "X-Tenant", value: "a" }] }, "GET http://a.example/", true],
    [{ headers: [{ name: "x-tenant", value: "b" }] }, "GET http://a.example/", false],
    [{ headers: [{ name: "X-Tenant" }] }, "GET http://a.example/", true],
    [{ headers: [{ name: "x-other" }] }, "GET http://a.example/", false],
    [{ headers: [{ name: "x-tenant" }] }, "CONNECT a.example:443", false],
    [
      {
        headers: [
          { name: "x-tenant", value: "a" },
          { name: "x-other", value: "a" },
        ],
      },
      "GET http://a.example/",
      false,
    ],
  ])("%j: %s: %s", (rule, line, expected) => {
    const http = [{ headers: [], ...rule }];
    const found = createMatcher([{ match: { resources: [], urls: [], http } }]).match(egressRequest(line, { "x-tenant": "a" }));
    expect(found.length === 1).toBe(expected);
  });
});
