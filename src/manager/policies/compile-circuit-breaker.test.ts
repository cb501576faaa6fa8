import { describe, expect, it } from "vitest";
import { PODS_RULE, sampleCircuitBreaker } from "../../../test/support/traffic-objects.ts";
import { validateCircuitBreaker } from "../../api/circuit-breaker.ts";
import { RECOVER } from "../../api/rate-limiting.ts";
import { compileCircuitBreaker } from "./compile-circuit-breaker.ts";

function compile(limiting: object = {}, spec: object = {}, annotations: Readonly<Record<string, string>> = {}) {
  const { metadata, ...object } = sampleCircuitBreaker({ ...limiting }, { ...spec });
  const checked = validateCircuitBreaker({ ...object, metadata: { ...(metadata as object), annotations } });
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems));
  return compileCircuitBreaker(checked.value);
}
const limiter = (limiting: object) => compile(limiting)[0]?.limiter;
const bucket = { burst: 5, interval: "10s", limit: 1 };

describe("compileCircuitBreaker", () => {
  it("makes a breaker of a Normal rule, with the place and the name of the rule", () => {
    expect(compile()).toEqual([
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
    const [rule] = compile({ resourceRules: [{ ...PODS_RULE, namespaces: ["a", "b"] }] });
    expect(rule?.match.resources).toEqual([{ ...PODS_RULE, namespaces: ["a", "b"], clusterScope: false }]);
  });

  it.each<[string, object, unknown]>([
    ["LimiterOnly is a bucket", { triggerPolicy: "LimiterOnly" }, { kind: "bucket", perSecond: 0.1, burst: 5 }],
    ["ForceOpened denies", { triggerPolicy: "ForceOpened" }, { kind: "deny" }],
    ["ForceClosed is no rule", { triggerPolicy: "ForceClosed" }, undefined],
    ["a rule for other servers alone is no rule yet", { resourceRules: [], restRules: [{ url: "*", method: "GET" }] }, undefined],
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
    expect(compile({}, {}, { [RECOVER]: "2026-11-22 by ann" })[0]?.recovery).toBe("2026-11-22 by ann");
  });

  it("counts in the shadow, and has no rules without rateLimitings", () => {
    expect(compile({}, { mode: "Shadow" })[0]?.mode).toBe("Shadow");
    const intercept = { name: "i", interceptType: "Blacklist", contentType: "Normal", contents: ["a"], methods: ["GET"] };
    expect(compile({}, { rateLimitings: undefined, trafficInterceptRules: [intercept] })).toEqual([]);
  });
});
