import { describe, expect, it } from "vitest";
import { PODS_RULE, sampleTrafficPolicy } from "../../../test/support/traffic-objects.ts";
import type { TrafficPolicy } from "../../api/traffic-policy.ts";
import { trafficPolicies } from "./traffic-policies.ts";

function compile(spec: object) {
  const compiled = trafficPolicies.compile(sampleTrafficPolicy({ ...spec }) as unknown as TrafficPolicy);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.problems));
  return compiled.value.rules.limits;
}
const rules = { resourceRules: [PODS_RULE] };
const limiters = (policy: object) =>
  compile({ rateLimiting: { ratePolicies: [{ rules, ...policy }] } }).map(({ origin, limiter }) => [origin.rule, limiter]);

describe("the rules of a TrafficPolicy", () => {
  it("makes a bucket of rateLimiting alone, with the place of the rule", () => {
    expect(compile({})).toEqual([
      {
        origin: {
          kind: "TrafficPolicy",
          namespace: "ops",
          name: "guard",
          uid: "uid-1",
          rule: "rateLimiting.ratePolicies[0].bucket",
        },
        mode: "Enforce",
        match: { resources: [{ ...PODS_RULE, clusterScope: false }], urls: [], http: [] },
        limiter: { kind: "bucket", perSecond: 2, burst: 5 },
        recovery: "",
      },
    ]);
  });

  it("gives each limiter of a policy a rule of its own, named after its field", () => {
    const exponentialBackoff = { baseDelayInMillisecond: 10, maxDelayInMillisecond: 40, continuouslyFailureTimes: 2 };
    expect(limiters({ bucket: { qps: 1, burst: 3 }, maxInFlight: 4, exponentialBackoff })).toEqual([
      ["rateLimiting.ratePolicies[0].bucket", { kind: "bucket", perSecond: 1, burst: 3 }],
      ["rateLimiting.ratePolicies[0].maxInFlight", { kind: "in-flight", max: 4 }],
      ["rateLimiting.ratePolicies[0].exponentialBackoff", { kind: "backoff", baseMs: 10, maxMs: 40, failures: 3 }],
    ]);
  });

  it("lets the first failure cause a wait unless the spec tolerates more", () => {
    expect(limiters({ exponentialBackoff: { baseDelayInMillisecond: 1, maxDelayInMillisecond: 2 } })).toEqual([
      [expect.anything(), { kind: "backoff", baseMs: 1, maxMs: 2, failures: 1 }],
    ]);
  });

  it("denies what circuitBreaking names, before the limits", () => {
    const compiled = compile({ circuitBreaking: { apiServer: rules, webhook: { admissionRules: [] } } });
    expect(compiled.map(({ origin, limiter }) => [origin.rule, limiter.kind])).toEqual([
      ["circuitBreaking.apiServer", "deny"],
      ["rateLimiting.ratePolicies[0].bucket", "bucket"],
    ]);
  });

  it.each([
    [{ circuitBreaking: {} }, "spec.circuitBreaking has no rules, so it refuses nothing"],
    [{ circuitBreaking: { webhook: {} } }, "spec.circuitBreaking.webhook has no admissionRules, so it refuses nothing"],
    [
      { circuitBreaking: { apiServer: rules }, rateLimiting: { ratePolicies: [] } },
      "spec.rateLimiting has no ratePolicies, so it limits nothing",
    ],
  ])("says that %j has no rules beside others (D27)", (spec, note) => {
    const compiled = trafficPolicies.compile(sampleTrafficPolicy(spec) as unknown as TrafficPolicy);
    expect(compiled.ok && compiled.value.notes).toEqual([note]);
  });

  it("denies the reviews that circuitBreaking names, and reads an absent list as all", () => {
    const admissionRules = [{ resources: ["pods/*"], operations: ["CREATE"], scope: "Namespaced" }, {}];
    const all = { apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"], scope: "*" };
    expect(compile({ circuitBreaking: { webhook: { admissionRules } }, rateLimiting: undefined })).toMatchObject([
      {
        origin: { rule: "circuitBreaking.webhook" },
        match: {
          resources: [],
          admissions: [{ ...all, operations: ["CREATE"], resources: ["pods/*"], scope: "Namespaced" }, all],
        },
        limiter: { kind: "deny" },
      },
    ]);
  });

  it("names namespaces and the cluster scope as the spec does", () => {
    const { namespaces: _, ...anywhere } = PODS_RULE;
    const resourceRules = [
      { ...anywhere, clusterScope: true },
      { ...anywhere, namespaces: ["a"], clusterScope: true },
      { ...anywhere, namespaces: ["*"], clusterScope: false },
    ];
    const [rule] = compile({ circuitBreaking: { apiServer: { resourceRules } }, rateLimiting: undefined });
    expect(rule?.match.resources.map(({ namespaces, clusterScope }) => [namespaces, clusterScope])).toEqual([
      [[], true],
      [["a"], true],
      [["*"], false],
    ]);
  });

  it("makes a rule for each URL, with methods in upper case", () => {
    const nonResourceRules = [
      { nonResourceURLs: ["/healthz", "/debug/*"], verbs: ["get", "post"] },
      { nonResourceURLs: ["*"], verbs: ["*"] },
    ];
    const [rule] = compile({ circuitBreaking: { apiServer: { nonResourceRules } }, rateLimiting: undefined });
    expect(rule?.match).toEqual({
      resources: [],
      urls: [
        { url: "/healthz", methods: ["GET", "POST"] },
        { url: "/debug/*", methods: ["GET", "POST"] },
        { url: "*", methods: ["*"] },
      ],
      http: [],
    });
  });

  it("counts in the shadow", () => {
    expect(compile({ mode: "Shadow" }).map(({ mode }) => mode)).toEqual(["Shadow"]);
  });
});
