import fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import { PODS_RULE, policyProblemsOf, sampleCircuitBreaker } from "../../test/support/traffic-objects.ts";
import { RECOVER_ANNOTATION } from "../base/recover-annotation.ts";
import type { KubeObject, LabelSelector } from "../kube/types.ts";
import { type CircuitBreaker, validateCircuitBreaker } from "./circuit-breaker.ts";
import type { PolicyStatus } from "./policy-status.ts";

const problems = (limiting: object = {}, spec: object = {}) =>
  policyProblemsOf("CircuitBreaker", sampleCircuitBreaker({ ...limiting }, { ...spec }));
const ruleProblems = (changes: object) => problems({ resourceRules: [{ ...PODS_RULE, ...changes }] });
const RULE = "spec.rateLimitings[0]";

describe("the type CircuitBreaker", () => {
  it("is a Kubernetes object with the status of a policy", () => {
    expectTypeOf<CircuitBreaker>().toExtend<KubeObject>();
    expectTypeOf<CircuitBreaker["spec"]["selector"]>().toExtend<LabelSelector>();
    expectTypeOf<NonNullable<CircuitBreaker["status"]>>().toEqualTypeOf<PolicyStatus>();
  });
});

describe("validateCircuitBreaker", () => {
  it("returns an object with every field unchanged", () => {
    const rest = [{ url: "https://example.com/v1/*", method: "POST" }];
    const trigger = { consecutiveErrors: 5, errorPercent: 50, minimumRequests: 10, window: "30s", slowerThan: "2s" };
    const intercept = { name: "inside", interceptType: "Whitelist", contentType: "Regexp", contents: ["a.*"], methods: ["GET"] };
    const object = sampleCircuitBreaker(
      { restRules: rest, trigger, properties: { owner: "me" } },
      { mode: "Shadow", trafficInterceptRules: [intercept] },
    );
    expect(validateCircuitBreaker(object)).toEqual({ ok: true, value: object });
  });

  it.each([
    ["a limit without a breaker", { triggerPolicy: "LimiterOnly", recoverPolicy: undefined }],
    ["a limit with a recoverPolicy, which has no effect", { triggerPolicy: "LimiterOnly" }],
    ["a breaker that opens at failures alone", { bucket: undefined, trigger: { consecutiveErrors: 3 } }],
    ["a breaker that is forced", { triggerPolicy: "ForceOpened", bucket: undefined, recoverPolicy: undefined }],
    ["a breaker that a person closes", { recoverPolicy: { type: "Manual" } }],
    ["a rule for other servers alone", { resourceRules: undefined, restRules: [{ url: "https://a.example", method: "GET" }] }],
    ["an exception", { resourceRules: [{ ...PODS_RULE, except: [{ names: ["p"] }, { users: ["system:serviceaccount:a:b"] }] }] }],
    ["a bucket for each object", { triggerPolicy: "LimiterOnly", bucket: { burst: 1, interval: "1s", limit: 1, per: "Object" } }],
  ])("accepts %s", (_, limiting) => expect(problems(limiting)).toEqual([]));

  it("refuses a divided bucket with a breaker, more than 16 of them, and exceptions that except nothing", () => {
    const bucket = { burst: 1, interval: "1s", limit: 1, per: "Policy" };
    expect(problems({ bucket })).toEqual([
      `${RULE}.bucket: with per Object or Policy needs triggerPolicy LimiterOnly: an open breaker would refuse what others may send`,
    ]);
    const limiting = { resourceRules: [PODS_RULE], triggerPolicy: "LimiterOnly", bucket };
    const rateLimitings = Array.from({ length: 17 }, (_, at) => ({ ...limiting, name: `r-${at}` }));
    expect(problems({}, { rateLimitings })).toEqual(["spec.rateLimitings: 17 buckets have per: Policy; at most 16 are allowed"]);
    expect(ruleProblems({ except: [{}, { users: ["*"] }] })).toEqual([
      `${RULE}.resourceRules[0].except[1].users[0]: "*": must be a user name such as "system:serviceaccount:shop:operator"; there are no wildcards`,
      `${RULE}.resourceRules[0].except[0]: excepts nothing: set namespaces, names or users`,
    ]);
  });

  it("reports all problems at once", () => {
    expect(
      problems(
        {
          name: "",
          bucket: { burst: 0, interval: "10", limit: 1.5 },
          triggerPolicy: "Force",
          trigger: { window: "1ms" },
          recoverPolicy: { type: "SleepingWindow" },
          resourceRules: [{ apiGroups: [], resources: ["Pods"], verbs: ["deletes"], namespaces: ["*", "shop"] }],
        },
        { selector: {}, mode: "enforce", trafficInterceptRules: [{ interceptType: "White" }] },
      ),
    ).toEqual([
      'spec.mode: "enforce": must be one of "Enforce", "Shadow", "Disabled"; did you mean "Enforce"?',
      `${RULE}.name: "": must be a text of one line, without a space at either end`,
      `${RULE}.resourceRules[0].apiGroups: must not be empty; use "*" for all`,
      `${RULE}.resourceRules[0].resources[0]: "Pods": must be a plural resource name such as "pods", a subresource such as "pods/status" or "*/scale", or "*" for all`,
      `${RULE}.resourceRules[0].verbs[0]: "deletes": must be one of "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*"; did you mean "delete"?`,
      `${RULE}.bucket.burst: 0: must be at least 1; to refuse every request, set triggerPolicy to ForceOpened and no bucket`,
      `${RULE}.bucket.interval: "10": must be a duration such as "300ms", "10s" or "1m30s"`,
      `${RULE}.bucket.limit: 1.5: must be a whole number, not a fraction`,
      `${RULE}.triggerPolicy: "Force": must be one of "Normal", "LimiterOnly", "ForceOpened", "ForceClosed"; did you mean "ForceOpened"?`,
      `${RULE}.trigger.window: "1ms": must be from 1s to 1h`,
      "spec.trafficInterceptRules[0].name: required",
      'spec.trafficInterceptRules[0].interceptType: "White": must be one of "Whitelist", "Blacklist"; did you mean "Whitelist"?',
      'spec.trafficInterceptRules[0].contentType: required: must be one of "Normal", "Regexp"',
      "spec.trafficInterceptRules[0].contents: required",
      'spec.trafficInterceptRules[0].methods: required; use "*" for all',
      "spec.selector: must have at least one term: an empty selector matches everything",
      `${RULE}.trigger: needs triggerPolicy Normal: only Normal opens a breaker`,
      `${RULE}.resourceRules[0].namespaces[0]: "*": "*" must be the only item of its list`,
      `${RULE}.trigger: opens nothing: set consecutiveErrors or errorPercent`,
      `${RULE}.recoverPolicy: SleepingWindow needs sleepingWindowSize`,
    ]);
  });

  it.each<[string, object, string]>([
    ["Normal without a recoverPolicy", { recoverPolicy: undefined }, `${RULE}.recoverPolicy: required with triggerPolicy Normal`],
    [
      "Normal without a bucket and a trigger",
      { bucket: undefined },
      `${RULE}.triggerPolicy: Normal needs something that opens the breaker`,
    ],
    ["LimiterOnly without a bucket", { triggerPolicy: "LimiterOnly", bucket: undefined }, `${RULE}.bucket: required`],
    ["a rule without requests", { resourceRules: [], restRules: [] }, `${RULE}: matches no requests: set resourceRules`],
    ["a trigger that opens nothing", { trigger: { slowerThan: "1s" } }, `${RULE}.trigger: opens nothing`],
  ])("refuses %s", (_, limiting, message) => expect(problems(limiting)).toEqual([expect.stringContaining(message)]));

  it("refuses an object without rules, and two rules of one name", () => {
    expect(problems({}, { rateLimitings: [] })).toEqual(["spec: has no rules: set rateLimitings or trafficInterceptRules"]);
    const [rule] = (sampleCircuitBreaker().spec as { rateLimitings: object[] }).rateLimitings;
    expect(problems({}, { rateLimitings: [rule, rule] })).toEqual([
      'spec.rateLimitings[1].name: "delete-pods": is already the name of spec.rateLimitings[0]',
    ]);
  });

  it("names the new fields to those who write KusionStack's older form", () => {
    const old = { recoverPolicy: "SleepingWindow", properties: { sleepingWindowSize: "10m" } };
    expect(problems(old)).toEqual([
      `${RULE}.recoverPolicy: "SleepingWindow": must be an object; did you mean {type: SleepingWindow, sleepingWindowSize: 10m}?`,
      `${RULE}.properties.sleepingWindowSize: "10m": has no effect; did you mean "recoverPolicy.sleepingWindowSize"?`,
    ]);
    expect(problems({ recoverPolicy: "Manual" })).toEqual([expect.stringContaining("did you mean {type: Manual}?")]);
    expect(problems({ recoverPolicy: { type: "Manual", sleepingWindow: "1s" } })).toEqual([
      expect.stringContaining('unknown field; did you mean "sleepingWindowSize"?'),
    ]);
  });

  it.each(["*", "pods", "pods/status", "pods/*", "*/scale", "deployments/scale"])("accepts the resource %s", (resource) =>
    expect(ruleProblems({ resources: [resource] })).toEqual([]),
  );

  it.each(["*/*", "pods/", "/status", "pods/status/x", "po*"])("refuses the resource %s", (resource) =>
    expect(ruleProblems({ resources: [resource] })).toEqual([expect.stringContaining("must be a plural resource name")]),
  );

  it("refuses rules that would fill the memory of proxies, before it compares them", () => {
    const resources = Array.from({ length: 64 }, (_, index) => `r${index}`);
    const namespaces = Array.from({ length: 257 }, (_, index) => `n${index}`);
    expect(ruleProblems({ resources, namespaces })).toEqual([expect.stringContaining("must have at most 256 items")]);
    const large = { ...PODS_RULE, resources, namespaces: namespaces.slice(1) };
    expect(problems({ resourceRules: [large] })).toEqual([]);
    expect(problems({ resourceRules: [large, PODS_RULE] })).toEqual([
      'spec.rateLimitings: all rules together list 16385 pairs of a resource and a namespace; at most 16384 are allowed, so use "*" for all',
    ]);
  });

  it("bounds the text of the annotation that closes breakers", () => {
    const withText = (text: string) => ({
      ...sampleCircuitBreaker(),
      metadata: { name: "guard", annotations: { [RECOVER_ANNOTATION]: text } },
    });
    expect(policyProblemsOf("CircuitBreaker", withText("n".repeat(256)))).toEqual([]);
    expect(policyProblemsOf("CircuitBreaker", withText("n".repeat(257)))).toEqual([
      expect.stringContaining("must have at most 256 characters"),
    ]);
  });

  it("drops a status that it cannot read", () => {
    expect(validateCircuitBreaker({ ...sampleCircuitBreaker(), status: { targets: 5 } })).toMatchObject({
      ok: true,
      value: { status: undefined },
    });
  });

  it("never throws, for any input", () => {
    const json = fc.jsonValue({ maxDepth: 6 }).filter((value) => value !== undefined);
    const whole = JSON.stringify(sampleCircuitBreaker());
    const leaves = whole.match(/"[^"]*"(?=[,\]}])/g) ?? [];
    fc.assert(
      fc.property(json, fc.constantFrom(...leaves), (value, leaf) => {
        expect(Array.isArray(policyProblemsOf("CircuitBreaker", value))).toBe(true);
        expect(Array.isArray(problems({ trigger: value }, { rateLimitings: value }))).toBe(true);
        expect(Array.isArray(problems({ restRules: value }, { trafficInterceptRules: [value, { contents: value }] }))).toBe(true);
        const changed = JSON.parse(whole.replace(leaf, () => JSON.stringify(value)));
        expect(Array.isArray(policyProblemsOf("CircuitBreaker", changed))).toBe(true);
      }),
      { interruptAfterTimeLimit: 1_500 },
    );
  });
});

const INTERCEPT = "spec.trafficInterceptRules[0]";
const normal = { name: "inside", interceptType: "Whitelist", contentType: "Normal", contents: ["example.com"], methods: ["*"] };
const interceptProblems = (...rules: object[]) =>
  policyProblemsOf("CircuitBreaker", sampleCircuitBreaker({}, { rateLimitings: undefined, trafficInterceptRules: rules }));
const withContents = (contentType: string, ...contents: string[]) => interceptProblems({ ...normal, contentType, contents });

describe("a rule of trafficInterceptRules", () => {
  it("lists hosts, with or without a port, or expressions", () => {
    expect(withContents("Normal", "example.com", "Example.com:443", "10.0.0.1", "[2001:db8::1]:443")).toEqual([]);
    expect(withContents("Regexp", "^[a-z]+[.]example[.]com(:443)?$")).toEqual([]);
  });

  it("reports all problems at once", () => {
    const rule = {
      ...normal,
      contents: ["https://example.com", "*.example.com", "a.example", "a.example"],
      methods: ["get", "*"],
    };
    expect(interceptProblems(rule)).toEqual([
      expect.stringContaining(`${INTERCEPT}.methods[0]: "get": must be one of "GET"`),
      `${INTERCEPT}.contents[0]: "https://example.com": must be a host such as "example.com", "example.com:443" or "[2001:db8::1]"`,
      expect.stringContaining(`${INTERCEPT}.contents[1]: "*.example.com": must be a host such as`),
      `${INTERCEPT}.contents[3]: "a.example": is already item 2 of the list`,
      `${INTERCEPT}.methods[1]: "*": "*" must be the only item of its list`,
    ]);
  });

  it("points those who write a wildcard to expressions", () => {
    expect(withContents("Normal", "*.example.com")).toEqual([expect.stringMatching(/a pattern needs contentType "Regexp"$/)]);
  });

  it("has expressions that RE2 compiles fast", () => {
    expect(withContents("Regexp", "(", "a(?=b)", "(a{110}){100}")).toEqual([
      expect.stringContaining(`${INTERCEPT}.contents[0]: "(": does not compile as RE2`),
      expect.stringContaining(`${INTERCEPT}.contents[1]: "a(?=b)": does not compile as RE2`),
      expect.stringContaining(`${INTERCEPT}.contents[2]: "(a{110}){100}": too large`),
    ]);
    expect(withContents("Regexp", "((a{100}){100}){100}")).toEqual([
      expect.stringMatching(/^spec\.trafficInterceptRules: all expressions together, .* at most 16384 are allowed$/),
    ]);
  });
});
