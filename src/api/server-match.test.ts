import { describe, expect, it } from "vitest";
import { policyProblemsOf, sampleCircuitBreaker, sampleFaultInjection } from "../../test/support/traffic-objects.ts";
import { parseServer, type Server } from "./server-match.ts";

const restProblems = (url: string, method = "GET") =>
  policyProblemsOf("CircuitBreaker", sampleCircuitBreaker({ resourceRules: undefined, restRules: [{ url, method }] }));
const httpProblems = (httpMatch: object) =>
  policyProblemsOf("FaultInjection", sampleFaultInjection({ match: { httpMatch: [httpMatch] } }));
const URL_PATH = "spec.rateLimitings[0].restRules[0].url";
const MATCH_PATH = "spec.httpFault[0].match.httpMatch[0]";

describe("parseServer", () => {
  it.each<[string, Server | undefined]>([
    ["example.com", { host: "example.com" }],
    ["Example.COM.:8443", { host: "example.com", port: 8443 }],
    ["10.0.0.1:80", { host: "10.0.0.1", port: 80 }],
    ["0x7f.1", { host: "127.0.0.1" }],
    ["[2001:DB8:0::1]:443", { host: "2001:db8::1", port: 443 }],
    ["[2001:db8::1]", { host: "2001:db8::1" }],
    ["2001:db8::1", undefined],
    ["example.com:0", undefined],
    ["example.com:65536", undefined],
    ["https://example.com", undefined],
    ["example.com/v1", undefined],
    ["me@example.com", undefined],
    ["*.example.com", undefined],
    ["1.2.3.4.5", undefined],
    ["", undefined],
  ])("%s", (text, expected) => expect(parseServer(text)).toEqual(expected));
});

describe("the URL of a restRule", () => {
  it.each([
    "https://example.com",
    "http://example.com:8080/v1/items?page=2",
    "https://example.com?page=2",
    "https://example.com/v1/*",
    "https://[2001:db8::1]:8443/*",
    "http://*",
    "https://example.com/a.b/..c/",
  ])("may be %s", (url) => expect(restProblems(url)).toEqual([]));

  it.each<[string, string]>([
    ["*", "must be a URL such as"],
    ["/healthz", "must be a URL such as"],
    ["example.com/v1", "must be a URL such as"],
    ["ftp://example.com/", "must be a URL such as"],
    ["https://", "must be a URL such as"],
    ["https://me:secret@example.com/", "must be a URL such as"],
    ["https://example.com/#part", "must be a URL such as"],
    ["https://*.example.com/", "must be a URL such as"],
    ["https://example.com:99999/", '"example.com:99999" is not host or host:port'],
    ["https://example.com/v*", 'matches nothing: "*" must be the whole last segment of the path'],
    ["https://example.com/*/items", 'matches nothing: "*" must be the whole last segment of the path'],
    ["https://example.com/a/../b", 'matches nothing: no request has a segment "." or ".."'],
    ["https://example.com/%2E%2e", 'matches nothing: no request has a segment "." or ".."'],
  ])("may not be %s", (url, message) =>
    expect(restProblems(url)).toEqual(
      [`${URL_PATH}: ${JSON.stringify(url)}: ${message}`].map((text) => expect.stringContaining(text)),
    ),
  );

  it("has a method in upper case", () => {
    expect(restProblems("https://example.com", "*")).toEqual([]);
    expect(restProblems("https://example.com", "CONNECT")).toEqual([]);
    expect(restProblems("https://example.com", "post")).toEqual([expect.stringContaining('did you mean "POST"?')]);
  });

  it("stands in the list once", () => {
    const rule = { url: "https://example.com", method: "GET" };
    const list = { restRules: [rule, { ...rule, method: "POST" }, rule] };
    expect(policyProblemsOf("CircuitBreaker", sampleCircuitBreaker(list))).toEqual([
      "spec.rateLimitings[0].restRules[2]: is already item 0 of the list",
    ]);
  });
});

describe("httpMatch", () => {
  it.each<[string, object]>([
    ["everything", {}],
    [
      "a host with a port, every method, and a header with any value",
      { host: { exact: "a.com:8443" }, method: "*", headers: [{ name: "x" }] },
    ],
    ["a host and a path", { host: { exact: "Example.com" }, path: { exact: "/v1" }, method: "CONNECT" }],
    ["expressions", { host: { regex: "^a[.]example$" }, path: { regex: "^/v[0-9]+/" } }],
  ])("may be about %s", (_, match) => expect(httpProblems(match)).toEqual([]));

  it("reports all problems at once", () => {
    const match = {
      host: { exact: "https://example.com" },
      path: { exact: "v1?a=b", regex: "(" },
      method: "get",
      headers: [{ name: "x y", value: "1" }],
    };
    expect(httpProblems(match)).toEqual([
      `${MATCH_PATH}.host.exact: "https://example.com": must be a host such as "example.com", "example.com:443" or "[2001:db8::1]"`,
      `${MATCH_PATH}.path.exact: "v1?a=b": must be a path without a query, such as "/v1/items"`,
      expect.stringContaining(`${MATCH_PATH}.method: "get": must be one of "GET"`),
      `${MATCH_PATH}.headers[0].name: "x y": must be the name of a header`,
      `${MATCH_PATH}.path: set either exact or regex`,
      expect.stringContaining(`${MATCH_PATH}.path.regex: "(": does not compile as RE2`),
    ]);
    expect(httpProblems({ host: {} })).toEqual([`${MATCH_PATH}.host: set either exact or regex`]);
  });

  it("bounds the expressions of an object together", () => {
    const httpMatch = Array.from({ length: 16 }, () => ({ path: { regex: "(a{99}){99}" } }));
    const fault = sampleFaultInjection({ match: { httpMatch } });
    expect(policyProblemsOf("FaultInjection", fault)).toEqual([
      expect.stringMatching(/^spec\.httpFault: all expressions together, .* at most 16384 are allowed$/),
    ]);
  });
});
