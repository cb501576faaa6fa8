import { describe, expect, it } from "vitest";
import { egressRequest, policyRequest } from "../../../test/support/policies.ts";
import { PODS_RULE, sampleCircuitBreaker } from "../../../test/support/traffic-objects.ts";
import type { CircuitBreaker } from "../../api/circuit-breaker.ts";
import { RECOVER_ANNOTATION } from "../../base/recover-annotation.ts";
import { createMatcher } from "../../policy/matcher.ts";
import { circuitBreakers } from "./circuit-breakers.ts";

function compile(limiting: object = {}, spec: object = {}, annotations: Readonly<Record<string, string>> = {}) {
  const { metadata, ...object } = sampleCircuitBreaker({ ...limiting }, { ...spec });
  const breaker = { ...object, metadata: { ...(metadata as object), annotations } };
  const compiled = circuitBreakers.compile(breaker as unknown as CircuitBreaker);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.problems));
  return compiled.value.rules;
}
const limiter = (limiting: object) => compile(limiting).limits[0]?.limiter;
const bucket = { burst: 5, interval: "10s", limit: 1 };

describe("the rules of a CircuitBreaker", () => {
  it("makes a breaker of a Normal rule, with the place and the name of the rule", () => {
    expect(compile().limits).toEqual([
      {
        origin: { kind: "CircuitBreaker", namespace: "ops", name: "guard", uid: "uid-1", rule: "delete-pods" },
        mode: "Enforce",
        match: { resources: [{ ...PODS_RULE, clusterScope: true }], urls: [], http: [] },
        limiter: { kind: "breaker", bucket: { perSecond: 0.1, burst: 5 }, sleepMs: 600_000 },
        recovery: "",
      },
    ]);
  });

  it("includes the cluster scope in all namespaces, and in no others", () => {
    const [rule] = compile({ resourceRules: [{ ...PODS_RULE, namespaces: ["a", "b"] }] }).limits;
    expect(rule?.match.resources).toEqual([{ ...PODS_RULE, namespaces: ["a", "b"], clusterScope: false }]);
  });

  it.each<[string, object, unknown]>([
    ["LimiterOnly is a bucket", { triggerPolicy: "LimiterOnly" }, { kind: "bucket", perSecond: 0.1, burst: 5 }],
    ["ForceOpened denies", { triggerPolicy: "ForceOpened" }, { kind: "deny" }],
    ["ForceClosed is an exemption", { triggerPolicy: "ForceClosed" }, { kind: "exempt" }],
    [
      "Manual has no time, whatever the window",
      { recoverPolicy: { type: "Manual", sleepingWindowSize: "1m" } },
      { kind: "breaker", bucket: { perSecond: 0.1, burst: 5 } },
    ],
    [
      "a bucket gains `limit` tokens in each interval",
      { triggerPolicy: "LimiterOnly", bucket: { burst: 9, interval: "1m30s", limit: 180 } },
      { kind: "bucket", perSecond: 2, burst: 9 },
    ],
  ])("%s", (_, limiting, expected) => expect(limiter(limiting)).toEqual(expected));

  it("compiles every field of a trigger, with the defaults of those that are absent", () => {
    const every = { consecutiveErrors: 5, errorPercent: 50, minimumRequests: 7, window: "1m", slowerThan: "2s" };
    expect(limiter({ bucket, trigger: every })).toMatchObject({
      bucket: { perSecond: 0.1, burst: 5 },
      trigger: { consecutive: 5, percent: 50, minimumRequests: 7, windowMs: 60_000, slowerThanMs: 2_000 },
    });
    expect(limiter({ bucket: undefined, trigger: { errorPercent: 10 } })).toEqual({
      kind: "breaker",
      trigger: { percent: 10, minimumRequests: 20, windowMs: 10_000 },
      sleepMs: 600_000,
    });
  });

  it("passes the text that closes open breakers to every rule", () => {
    expect(compile({}, {}, { [RECOVER_ANNOTATION]: "2026-11-22 by ann" }).limits[0]?.recovery).toBe("2026-11-22 by ann");
  });

  it("counts in the shadow", () => {
    expect(compile({}, { mode: "Shadow" }).limits[0]?.mode).toBe("Shadow");
  });

  it("counts requests to the API server and to other servers with one limiter", () => {
    const restRules = [
      { url: "https://Example.com:443/v1/*", method: "POST" },
      { url: "http://[2001:DB8:0::1]:8080?a=b", method: "*" },
      { url: "https://*", method: "CONNECT" },
    ];
    const { limits } = compile({ restRules });
    expect(limits).toHaveLength(1);
    expect(limits[0]?.match).toEqual({
      resources: [{ ...PODS_RULE, clusterScope: true }],
      urls: [
        { url: "https://example.com:443/v1/*", methods: ["POST"] },
        { url: "http://[2001:db8::1]:8080?a=b", methods: ["*"] },
        { url: "https://*", methods: ["CONNECT"] },
      ],
      http: [],
    });
    const matcher = createMatcher(limits);
    expect(matcher.match(egressRequest("POST http://[2001:db8::1]:8080/?a=b"))).toHaveLength(1);
    expect(matcher.match(egressRequest("CONNECT other.example:443"))).toHaveLength(1);
    expect(matcher.match(egressRequest("GET http://other.example/"))).toEqual([]);
    expect(matcher.match(policyRequest("GET /healthz"))).toEqual([]);
  });
});

describe("the trafficInterceptRules of a CircuitBreaker", () => {
  const intercept = { name: "i", interceptType: "Whitelist", contentType: "Normal", contents: ["A.example:443"], methods: ["*"] };
  const egress = (...rules: object[]) =>
    compile({}, { mode: "Shadow", rateLimitings: undefined, trafficInterceptRules: rules }).egress;

  it("allow what a Whitelist names, and deny what a Blacklist names", () => {
    const black = {
      ...intercept,
      name: "b",
      interceptType: "Blacklist",
      contents: ["[2001:DB8::1]"],
      methods: ["GET", "CONNECT"],
    };
    const origin = { kind: "CircuitBreaker", namespace: "ops", name: "guard", uid: "uid-1" };
    expect(egress(intercept, black)).toEqual([
      {
        origin: { ...origin, rule: "i" },
        mode: "Shadow",
        effect: "Allow",
        hosts: [{ host: "a.example", port: 443 }],
        methods: ["*"],
      },
      {
        origin: { ...origin, rule: "b" },
        mode: "Shadow",
        effect: "Deny",
        hosts: [{ host: "2001:db8::1" }],
        methods: ["GET", "CONNECT"],
      },
    ]);
  });

  it("take expressions as they are", () => {
    const [rule] = egress({ ...intercept, contentType: "Regexp", contents: ["^a[.]Example$"] });
    expect(rule?.hosts).toEqual([{ regex: "^a[.]Example$" }]);
  });
});
