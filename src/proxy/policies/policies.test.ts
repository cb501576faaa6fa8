import { describe, expect, it } from "vitest";
import { egressRequest, egressRule, limitRule, policyRequest } from "../../../test/support/policies.ts";
import { runningPolicies } from "../../../test/support/running-policies.ts";
import { type BreakerSpec, NO_POLICIES } from "../../policy/policy.ts";

const GET = policyRequest("GET /api/v1/namespaces/a/pods/p");
const BREAKER: BreakerSpec = { kind: "breaker", bucket: { perSecond: 1, burst: 1 }, sleepMs: 10_000 };

describe("the report to the manager", () => {
  it("has a breaker from its opening on, also when it has closed", async () => {
    const { policies, clock } = runningPolicies({ limits: [limitRule(BREAKER)] });
    expect(policies.report).toEqual({ digest: "digest", rules: [] });
    const openedMs = clock.now();
    for (let i = 0; i < 2; i++) policies.limit(GET);
    expect(policies.report.rules).toEqual([
      { uid: "uid-1", rule: "rule", opened: true, sinceMs: openedMs, halfOpen: false, cause: "" },
    ]);
    await clock.advance(10_000);
    const probe = policies.limit(GET);
    if (probe.kind === "permitted") probe.permit.settle({ kind: "answered", status: 200, tookMs: 1 });
    expect(policies.report.rules).toEqual([
      { uid: "uid-1", rule: "rule", opened: false, sinceMs: openedMs + 10_000, halfOpen: false, cause: "" },
    ]);
  });

  it("forgets a rule that is gone", () => {
    const { policies } = runningPolicies({ limits: [limitRule(BREAKER)] });
    for (let i = 0; i < 2; i++) policies.limit(GET);
    policies.enforce({ limits: [], faults: [], egress: [] }, "other");
    expect(policies.report).toEqual({ digest: "other", rules: [] });
  });

  it("does not know a rule that comes back", () => {
    const { policies } = runningPolicies({ limits: [limitRule(BREAKER)] });
    for (let i = 0; i < 2; i++) policies.limit(GET);
    policies.enforce(NO_POLICIES, "none");
    policies.enforce({ ...NO_POLICIES, limits: [limitRule(BREAKER)] }, "again");
    expect(policies.report).toEqual({ digest: "again", rules: [] });
  });

  it("lists 64 rules at most, open ones first", () => {
    const limits = Array.from({ length: 80 }, (_, at) => limitRule(BREAKER, { name: `rule-${at}` }));
    const { policies } = runningPolicies({ limits });
    for (let i = 0; i < 2; i++) policies.limit(GET);
    expect(policies.report.rules).toHaveLength(64);
  });
});

it("an allow-list holds as long as it is in force, and its decisions are a metric", async () => {
  const rule = egressRule("Allow", [{ host: "a.example" }]);
  const { policies, registry } = runningPolicies({ egress: [rule] });
  expect(policies.isAllowList).toBe(true);
  expect(policies.judge(egressRequest("GET http://b.example/")).refusedBy).toEqual(rule);
  expect(await registry.metrics()).toMatch(/policy_decisions_total\{.*rule="guard\/rule",decision="deny",mode="Enforce"\} 1/);
  policies.enforce({ limits: [], faults: [], egress: [] }, "none");
  expect(policies.isAllowList).toBe(false);
  expect(policies.judge(egressRequest("GET http://b.example/")).refusedBy).toBeUndefined();
});

it("a breaker that is open in the shadow refuses nothing, and is no open breaker in the metrics", async () => {
  const { policies, registry } = runningPolicies({ limits: [limitRule(BREAKER, { mode: "Shadow" })] });
  for (let i = 0; i < 3; i++) expect(policies.limit(GET).kind).toBe("permitted");
  expect(await registry.metrics()).not.toMatch(/breaker_open\{/);
  policies.enforce({ limits: [limitRule(BREAKER)], faults: [], egress: [] }, "enforced");
  expect(await registry.metrics()).toMatch(/breaker_open\{rule="guard\/rule"\} 1/);
});

it("decisions and open breakers are metrics, and rules beyond the 64th are one", async () => {
  const limits = Array.from({ length: 70 }, (_, at) => limitRule(BREAKER, { name: `rule-${at}` }));
  const { policies, registry } = runningPolicies({ limits });
  for (let i = 0; i < 2; i++) policies.limit(GET);
  const text = await registry.metrics();
  expect(text).toMatch(/policy_decisions_total\{kind="CircuitBreaker",rule="guard\/rule-0",decision="open",mode="Enforce"\} 1/);
  expect(text).toMatch(/breaker_open\{rule="guard\/rule-0"\} 1/);
  expect(text).toMatch(/breaker_open\{rule="other"\} 1/);
  expect(text.match(/^ctrlmesh_proxy_policy_decisions_total\{/gm)?.length).toBeLessThan(140);
});

it("a rule that is gone takes its metrics along, and leaves its place to another one", async () => {
  const named = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, at) => limitRule({ kind: "deny" }, { name: `rule-${from + at}` }));
  const { policies, registry } = runningPolicies({ limits: named(0, 64) });
  policies.limit(GET);
  policies.enforce({ ...NO_POLICIES, limits: named(1, 65) }, "next");
  for (let i = 0; i < 2; i++) policies.limit(GET);
  const text = await registry.metrics();
  const count = (rule: string) => text.match(new RegExp(`decisions_total{.*rule="${rule}".*} (\\d+)`))?.[1];
  expect([count("guard/rule-0"), count("guard/rule-1"), count("guard/rule-64"), count("other")]).toEqual([
    undefined,
    "3",
    "2",
    undefined,
  ]);
});
