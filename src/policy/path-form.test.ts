import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { budget } from "../../test/support/fuzz.ts";
import { egressRequest, policyRequest, resourceRule } from "../../test/support/policies.ts";
import { isMeshError } from "../base/errors.ts";
import { createMatcher, type Matcher } from "./matcher.ts";
import { pathForm, readingsOf } from "./path-form.ts";
import { egressRequestOf, type PolicyRequest } from "./policy-request.ts";

describe("the form of a path", () => {
  it.each([
    ["", "/"],
    ["//", "/"],
    ["/v1/x/", "/v1/x"],
    ["//v1///x", "/v1/x"],
    ["/%76%31/x", "/v1/x"],
    ["/a%2fb", "/a%2Fb"],
    ["/%2576", "/%2576"],
    ["/%zz%", "/%25zz%25"],
    ["/%C3%a9", "/%C3%A9"],
    ["/a%20b", "/a%20b"],
    ["/a%3Fb%23", "/a?b#"],
    ["/caf\u00c3\u00a9", "/caf%C3%A9"],
  ])("%j is %j", (path, form) => expect(pathForm(path)).toBe(form));

  it("of any text is its own form", () => {
    const text = fc.stringMatching(/^[\x21-\xff]*$/);
    fc.assert(
      fc.property(text, (path) => {
        expect(pathForm(pathForm(path))).toBe(pathForm(path));
      }),
      budget(2_000),
    );
  });

  it("divides an escaped slash in the second reading only", () => {
    const path = "/a%2Fb/%2fc%25";
    expect(readingsOf(path).map((reading) => pathForm(path, 100, reading))).toEqual(["/a%2Fb/%2Fc%25", "/a/b/c%25"]);
    expect(readingsOf("/a/b")).toEqual(["letter"]);
  });
});

const METHODS = ["*"];
const urls = ["/metrics", "/debug/*", "/debug/pprof/heap", "/openapi/v3", "*"];
const servers = urls.map((url) => `http://a.example${url.replace(/^\*$/, "/*")}`);
const RULES = [...urls, ...servers, "http://a.example/metrics?x=1"].map((url) => ({
  url,
  match: { resources: [], urls: [{ url, methods: METHODS }], http: [{ path: { exact: url.replace("/*", "") }, headers: [] }] },
}));
const matcher = createMatcher(RULES);
const names = (request: PolicyRequest) => matcher.match(request).map(({ url }) => url);

const segment = fc.constantFrom("metrics", "debug", "pprof", "heap", "openapi", "v3", "x.y-z", "a@b");
const path = fc.array(segment, { minLength: 1, maxLength: 5 }).map((parts) => `/${parts.join("/")}`);
/** A path, and another spelling of it. */
const spelled = path.chain((plain) =>
  fc
    .tuple(
      fc.array(fc.constantFrom("plain", "upper", "lower"), { minLength: plain.length, maxLength: plain.length }),
      fc.array(fc.integer({ min: 1, max: 3 }), { minLength: plain.length, maxLength: plain.length }),
      fc.boolean(),
    )
    .map(([how, slashes, isEnded]) => {
      const letters = [...plain].map((letter, at) => {
        if (letter === "/") return "/".repeat(slashes[at] ?? 1);
        if (how[at] === "plain") return letter;
        const escaped = `%${letter.charCodeAt(0).toString(16)}`;
        return how[at] === "upper" ? escaped.toUpperCase() : escaped;
      });
      return { plain, other: letters.join("") + (isEnded ? "/" : "") };
    }),
);

it("each spelling of a path matches the same rules as the plain one, or is refused as unreadable", () => {
  fc.assert(
    fc.property(spelled, ({ plain, other }) => {
      expect(names(egressRequest(`GET http://a.example${other}`))).toEqual(names(egressRequest(`GET http://a.example${plain}`)));
      try {
        expect(names(policyRequest(`GET ${other}`))).toEqual(names(policyRequest(`GET ${plain}`)));
      } catch (error) {
        if (!isMeshError(error, "BAD_REQUEST_TARGET")) throw error;
      }
    }),
    budget(2_000),
  );
});

/** About as long as Node lets the head of a request be. */
const LENGTH = 120_000;
const fill = (part: string) => part.repeat(Math.ceil(LENGTH / part.length));
const limits = createMatcher(RULES.map(({ match }) => ({ match: { ...match, http: [] } })));

it.each([
  ["many segments", fill("/a")],
  ["slashes", fill("/")],
  ["escaped slashes", fill("%2F")],
  ["escaped letters", `/${fill("%61")}`],
  ["escaped letters in many segments", fill("/%61")],
  ["one segment", `/${fill("a")}`],
  ["a rule's path, and many segments", `/debug${fill("/debug")}`],
])("a path of 120 KB with %s costs little more than a short one (D17)", (_, long) => {
  const target = { scheme: "http", host: "a.example", port: 80, path: long, query: "", headers: {} } as const;
  const requests = [{ ...policyRequest("GET /debug"), path: long }, egressRequestOf("GET", target)];
  const costMs = ({ match }: Matcher<unknown>) => {
    for (const request of requests) match(request);
    const before = process.cpuUsage();
    for (let round = 0; round < 50; round++) for (const request of requests) match(request);
    return process.cpuUsage(before).user / 1_000 / 50;
  };
  expect(costMs(limits)).toBeLessThan(2);
  // An expression of a fault has to see the path.
  expect(costMs(matcher)).toBeLessThan(8);
});

it("a rule about objects is about no path", () => {
  const objects = createMatcher([{ match: { resources: [resourceRule()], urls: [], http: [] } }]);
  expect(objects.match(policyRequest("GET /metrics"))).toEqual([]);
});
