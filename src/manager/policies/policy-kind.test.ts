import { describe, expect, it } from "vitest";
import { sampleCircuitBreaker, sampleFaultInjection, sampleTrafficPolicy } from "../../../test/support/traffic-objects.ts";
import { BREAKER_DISABLED } from "../../api/circuit-breaker.ts";
import { FAULT_DISABLED } from "../../api/fault-injection.ts";
import { NO_POLICIES } from "../../policy/policy.ts";
import { POLICY_KINDS } from "./add.ts";
import type { Policy, PolicyObject, TargetPod } from "./policy-kind.ts";

type Sample = Readonly<Record<string, unknown>>;

function compile(object: Sample, changes: { readonly labels?: object; readonly status?: object } = {}) {
  const kind = POLICY_KINDS.find(({ resource }) => resource.kind === object.kind);
  if (kind === undefined) throw new Error(`no kind ${String(object.kind)}`);
  const metadata = { ...(object.metadata as object), labels: changes.labels ?? {} };
  return kind.compile({ ...object, metadata, status: changes.status } as unknown as PolicyObject);
}

function policyOf(...args: Parameters<typeof compile>): Policy {
  const compiled = compile(...args);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.problems));
  return compiled.value;
}

const pod = (changes: Partial<TargetPod> = {}): TargetPod => ({
  namespace: "ops",
  name: "shop-1",
  uid: "u",
  ip: "10.0.0.1",
  labels: { app: "shop" },
  app: "shop",
  subset: "",
  hasEgress: false,
  hasRun: true,
  ...changes,
});

describe("every policy kind", () => {
  it.each([sampleTrafficPolicy(), sampleCircuitBreaker(), sampleFaultInjection()])("enforces a valid $kind", (object) => {
    const policy = policyOf(object);
    expect(policy).toMatchObject({ off: "", notes: [] });
    expect(policy.rules.limits.length + policy.rules.faults.length).toBe(1);
  });

  it("enforces nothing in the mode Off", () => {
    for (const object of [sampleTrafficPolicy({ mode: "Disabled" }), sampleCircuitBreaker({}, { mode: "Disabled" })]) {
      expect(policyOf(object)).toMatchObject({ off: "spec.mode is Disabled", rules: NO_POLICIES });
    }
    expect(policyOf(sampleFaultInjection({}, { mode: "Disabled" }))).toMatchObject({
      off: "spec.mode is Disabled",
      rules: NO_POLICIES,
    });
  });

  it("returns the problems of an invalid object, also of one that is older than its schema", () => {
    expect(compile({ ...sampleCircuitBreaker(), spec: { rateLimitings: "none" } })).toMatchObject({ ok: false });
    expect(compile({ kind: "TrafficPolicy" })).toMatchObject({ ok: false });
  });
});

describe("KusionStack's switches", () => {
  it.each([
    [BREAKER_DISABLED, sampleCircuitBreaker()],
    [FAULT_DISABLED, sampleFaultInjection()],
  ])("the label %s switches off with any value but false", (label, object) => {
    expect(policyOf(object, { labels: { [label]: "true" } })).toMatchObject({
      off: `the label ${label} is set`,
      rules: NO_POLICIES,
    });
    expect(policyOf(object, { labels: { [label]: "" } }).off).not.toBe("");
    expect(policyOf(object, { labels: { [label]: "false" } }).off).toBe("");
  });

  it("disabled switches a FaultInjection off", () => {
    expect(policyOf(sampleFaultInjection({}, { disabled: true }))).toMatchObject({
      off: "spec.disabled is true",
      rules: NO_POLICIES,
    });
    expect(policyOf(sampleFaultInjection({}, { disabled: false })).off).toBe("");
  });
});

describe("the pods of a policy", () => {
  const target = (specificSubsets?: readonly string[]) =>
    policyOf(sampleTrafficPolicy({ targetVirtualApps: [{ name: "cart" }, { name: "shop", specificSubsets }] }));

  it("of a TrafficPolicy are those of its apps", () => {
    expect(target().isFor(pod())).toBe(true);
    expect(target().isFor(pod({ app: "other" }))).toBe(false);
    expect(target(["canary"]).isFor(pod({ app: "cart", subset: "blue" }))).toBe(true);
  });

  it.each<[readonly string[], string, boolean]>([
    [[], "canary", true],
    [["*"], "canary", true],
    [["*"], "", true],
    [["canary"], "canary", true],
    [["canary"], "", false],
    [["default"], "", true],
    [["default"], "canary", false],
  ])("of a TrafficPolicy for the subsets %j: subset %j is %s", (subsets, subset, expected) => {
    expect(target(subsets).isFor(pod({ subset }))).toBe(expected);
  });

  it("of the other kinds have its labels, whatever their app", () => {
    for (const object of [sampleCircuitBreaker(), sampleFaultInjection()]) {
      expect(policyOf(object).isFor(pod({ app: "other" }))).toBe(true);
      expect(policyOf(object).isFor(pod({ labels: { app: "cart" } }))).toBe(false);
    }
  });
});

describe("maxDuration", () => {
  const object = sampleFaultInjection({}, { maxDuration: "1h" });
  const specSince = "2026-11-22T10:00:00.000Z";

  it("counts from the time at which the manager first saw the present spec", () => {
    const [rule] = policyOf(object, { status: { observedGeneration: 1, specSince } }).rules.faults;
    expect(rule?.untilMs).toBe(Date.parse("2026-11-22T11:00:00.000Z"));
  });

  it.each([
    ["no status", undefined],
    ["a status of an earlier spec", { observedGeneration: 0, specSince }],
    ["a status without a time", { observedGeneration: 1 }],
  ])("keeps the faults off with %s", (_, status) => {
    const policy = policyOf(object, status === undefined ? {} : { status });
    expect(policy.off).toContain("waits until the start of spec.maxDuration is stored");
    expect(policy.rules.faults).toEqual([]);
  });
});

describe("fields without effect, and rules that cannot see into tunnels", () => {
  it("are named", () => {
    const restRules = [
      { url: "https://a.example/v1", method: "*" },
      { url: "https://a.example/*", method: "GET" },
      { url: "https://a.example/*", method: "CONNECT" },
      { url: "https://*", method: "*" },
      { url: "http://a.example/v1", method: "GET" },
    ];
    const intercept = { interceptType: "Blacklist", contentType: "Normal", contents: ["a"] };
    const trafficInterceptRules = [
      { ...intercept, name: "get", methods: ["GET"] },
      { ...intercept, name: "tunnels", methods: ["GET", "CONNECT"] },
      { ...intercept, name: "all", methods: ["*"] },
    ];
    const named = [
      sampleTrafficPolicy({ circuitBreaking: { webhook: {} } }),
      sampleCircuitBreaker({ properties: { a: "b" }, restRules }, { trafficInterceptRules }),
      sampleFaultInjection({ match: { httpMatch: [{ method: "GET" }] } }),
      sampleFaultInjection({ delay: { fixedDelay: "1s" }, abort: { httpStatus: 500, percent: "0" } }),
      sampleFaultInjection({ delay: undefined, abort: { httpStatus: 200, percent: "5" } }),
    ].flatMap((object) => policyOf(object).notes);
    const tunnels = "does not match the tunnels (CONNECT) of HTTPS clients, in which method and path are encrypted";
    expect(named).toEqual([
      "spec.circuitBreaking.webhook has no admissionRules, so it refuses nothing",
      "spec.rateLimitings[0].properties has no effect",
      `spec.rateLimitings[0].restRules[0] ${tunnels}; "https://host/*" with CONNECT does`,
      `spec.rateLimitings[0].restRules[1] ${tunnels}; "https://host/*" with CONNECT does`,
      `spec.trafficInterceptRules[0] ${tunnels}; add CONNECT to methods`,
      'spec.httpFault[0].delay never happens: set percent, such as "100"',
      'spec.httpFault[0].abort never happens: set percent, such as "100"',
      "spec.httpFault[0].abort never happens: httpStatus 200 means no abort",
    ]);
  });
});

it("an object that compiles to more than a pod may have is not valid", () => {
  const urls = (count: number) => Array.from({ length: count }, (_, at) => `/${at}`);
  const policyWith = (count: number) => {
    const nonResourceRules = Array.from({ length: 16 }, () => ({ nonResourceURLs: urls(count), verbs: ["get", "put", "post"] }));
    const exponentialBackoff = { baseDelayInMillisecond: 1, maxDelayInMillisecond: 2 };
    const ratePolicy = { rules: { nonResourceRules }, bucket: { qps: 2, burst: 5 }, maxInFlight: 3, exponentialBackoff };
    return sampleTrafficPolicy({ rateLimiting: { ratePolicies: Array.from({ length: 64 }, () => ratePolicy) } });
  };
  const compiled = (count: number) => compile(policyWith(count));
  expect(compiled(8).ok).toBe(true);
  expect(compiled(64)).toEqual({
    ok: false,
    problems: [{ path: "spec", message: expect.stringMatching(/^is too large: .* 2 MiB$/) }],
  });
});
