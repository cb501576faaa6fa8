import fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import { PODS_RULE, policyProblemsOf, sampleTrafficPolicy } from "../../test/support/traffic-objects.ts";
import type { KubeObject } from "../kube/types.ts";
import type { PolicyStatus } from "./policy-status.ts";
import { type TrafficPolicy, validateTrafficPolicy } from "./traffic-policy.ts";

const problems = (spec: object) => policyProblemsOf("TrafficPolicy", sampleTrafficPolicy({ ...spec }));
const rules = { resourceRules: [PODS_RULE] };
const limited = (policy: object) => ({ rateLimiting: { ratePolicies: [{ rules, ...policy }] } });
const limitedTo = (rule: object) => limited({ rules: { resourceRules: [{ ...PODS_RULE, ...rule }] }, maxInFlight: 1 });
const POLICY = "spec.rateLimiting.ratePolicies[0]";

describe("the type TrafficPolicy", () => {
  it("is a Kubernetes object with the status of a policy", () => {
    expectTypeOf<TrafficPolicy>().toExtend<KubeObject>();
    expectTypeOf<NonNullable<TrafficPolicy["status"]>>().toEqualTypeOf<PolicyStatus>();
  });
});

describe("validateTrafficPolicy", () => {
  it("returns an object with every field unchanged", () => {
    const nonResourceRules = [{ nonResourceURLs: ["/healthz", "/debug/*"], verbs: ["get", "post"] }];
    const clusterRule = { apiGroups: [""], resources: ["nodes/status"], verbs: ["*"], clusterScope: true };
    const admission = { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"], scope: "Namespaced" };
    const object = sampleTrafficPolicy({
      targetVirtualApps: [
        { name: "shop", specificSubsets: ["canary", "default"] },
        { name: "cart", specificSubsets: ["*"] },
      ],
      mode: "Disabled",
      circuitBreaking: {
        apiServer: { resourceRules: [PODS_RULE, clusterRule], nonResourceRules },
        webhook: { admissionRules: [admission] },
      },
      rateLimiting: {
        ratePolicies: [
          {
            rules: { nonResourceRules: [{ nonResourceURLs: ["*"], verbs: ["*"] }] },
            bucket: { qps: 1, burst: 2 },
            maxInFlight: 3,
            exponentialBackoff: { baseDelayInMillisecond: 10, maxDelayInMillisecond: 10, continuouslyFailureTimes: 0 },
          },
        ],
      },
    });
    expect(validateTrafficPolicy(object)).toEqual({ ok: true, value: object });
  });

  it.each([
    ["an empty list of subsets, which means all", { targetVirtualApps: [{ name: "shop", specificSubsets: [] }] }],
    ["an empty list of namespaces beside clusterScope", limitedTo({ namespaces: [], clusterScope: true })],
    ["rateLimiting alone", {}],
    ["circuitBreaking alone", { rateLimiting: undefined, circuitBreaking: { apiServer: rules } }],
  ])("accepts %s", (_, spec) => expect(problems(spec)).toEqual([]));

  it("reports all problems at once", () => {
    expect(
      problems({
        targetVirtualApps: [{ name: "Shop", specificSubsets: ["*", "canary"] }, { name: "Shop" }],
        modes: "Disabled",
        circuitBreaking: { apiServer: { nonResourceRules: [{ nonResourceURLs: ["/hea*", "healthz"], verbs: ["GET"] }] } },
        rateLimiting: {
          ratePolicies: [
            { rules: { resourceRules: [{ ...PODS_RULE, namespaces: undefined }] }, bucket: { qps: 0 }, maxInFlight: 0 },
            { rules: {}, exponentialBackoff: { baseDelayInMillisecond: 20, maxDelayInMillisecond: 10 } },
            {},
          ],
        },
      }),
    ).toEqual([
      'spec.targetVirtualApps[0].name: "Shop": must be a DNS subdomain: lower-case letters, digits, "-" and ".", with a letter or digit at both ends',
      'spec.targetVirtualApps[1].name: "Shop": must be a DNS subdomain: lower-case letters, digits, "-" and ".", with a letter or digit at both ends',
      'spec.circuitBreaking.apiServer.nonResourceRules[0].nonResourceURLs[0]: "/hea*": must be a path such as "/healthz", a path whose last segment is "*" such as "/debug/*", or "*" for all',
      'spec.circuitBreaking.apiServer.nonResourceRules[0].nonResourceURLs[1]: "healthz": must be a path such as "/healthz", a path whose last segment is "*" such as "/debug/*", or "*" for all',
      'spec.circuitBreaking.apiServer.nonResourceRules[0].verbs[0]: "GET": must be one of "get", "head", "post", "put", "patch", "delete", "options", "*"; did you mean "get"?',
      `${POLICY}.bucket.qps: 0: must be at least 1`,
      `${POLICY}.bucket.burst: required`,
      `${POLICY}.maxInFlight: 0: must be at least 1`,
      "spec.rateLimiting.ratePolicies[2].rules: required",
      'spec.modes: unknown field; did you mean "mode"?',
      'spec.targetVirtualApps[1].name: "Shop": is already the name of spec.targetVirtualApps[0]',
      'spec.targetVirtualApps[0].specificSubsets[0]: "*": "*" must be the only item of its list',
      `${POLICY}.rules.resourceRules[0]: matches no requests: set namespaces, or clusterScope to true`,
      "spec.rateLimiting.ratePolicies[1].rules: matches no requests: set resourceRules or nonResourceRules",
      "spec.rateLimiting.ratePolicies[1].exponentialBackoff.maxDelayInMillisecond: must not be less than baseDelayInMillisecond",
      "spec.rateLimiting.ratePolicies[2]: limits nothing: set bucket, maxInFlight or exponentialBackoff",
    ]);
  });

  it("refuses a policy without rules, without apps, or with a limit that limits nothing", () => {
    const none = "spec: has no rules: set circuitBreaking or rateLimiting, and rules in it";
    expect(problems({ rateLimiting: undefined })).toEqual([none]);
    expect(problems({ targetVirtualApps: [] })).toEqual(["spec.targetVirtualApps: must not be empty"]);
    expect(problems(limited({}))).toEqual([`${POLICY}: limits nothing: set bucket, maxInFlight or exponentialBackoff`]);
  });

  it.each([
    { circuitBreaking: {} },
    { circuitBreaking: { webhook: {} } },
    { circuitBreaking: { webhook: { admissionRules: [] } } },
    { rateLimiting: {} },
    { rateLimiting: { ratePolicies: [] }, circuitBreaking: {} },
  ])("refuses %j alone, which has no rule (D27)", (spec) => {
    expect(problems({ rateLimiting: undefined, ...spec })).toEqual([
      "spec: has no rules: set circuitBreaking or rateLimiting, and rules in it",
    ]);
  });

  it("counts the rules of both parts against one bound", () => {
    const resources = Array.from({ length: 64 }, (_, index) => `r${index}`);
    const namespaces = Array.from({ length: 256 }, (_, index) => `n${index}`);
    const large = { resourceRules: [{ ...PODS_RULE, resources, namespaces }] };
    expect(problems({ circuitBreaking: { apiServer: large } })).toEqual([expect.stringContaining("at most 16384 are allowed")]);
  });

  it("never throws, for any input", () => {
    const json = fc.jsonValue({ maxDepth: 6 }).filter((value) => value !== undefined);
    const whole = JSON.stringify(sampleTrafficPolicy());
    const leaves = whole.match(/"[^"]*"(?=[,\]}])/g) ?? [];
    fc.assert(
      fc.property(json, fc.constantFrom(...leaves), (value, leaf) => {
        expect(Array.isArray(policyProblemsOf("TrafficPolicy", value))).toBe(true);
        expect(Array.isArray(problems({ rateLimiting: value, targetVirtualApps: value }))).toBe(true);
        const changed = JSON.parse(whole.replace(leaf, () => JSON.stringify(value)));
        expect(Array.isArray(policyProblemsOf("TrafficPolicy", changed))).toBe(true);
      }),
      { interruptAfterTimeLimit: 1_500 },
    );
  });
});
