import { describe, expect, it } from "vitest";
import { egressRequest, egressRule, limitRule, policyRequest } from "../../../test/support/policies.ts";
import { runningPolicies } from "../../../test/support/running-policies.ts";
import { type Logger, silentLogger } from "../../base/log.ts";
import { type BreakerSpec, NO_POLICIES } from "../../policy/policy.ts";

const GET = policyRequest("GET /api/v1/namespaces/a/pods/p");
const BREAKER: BreakerSpec = { kind: "breaker", bucket: { perSecond: 1, burst: 1 }, sleepMs: 10_000 };

describe("the report to the manager", () => {
  it("has a breaker from its opening on, also when it has closed", async () => {
    const { policies, clock } = runningPolicies({ limits: [limitRule(BREAKER)] });
    expect(policies.report).toEqual({ digest: "digest", rules: [] });
    const openedMs = clock.now();
    for (let i = 0; i < 2; i++) policies.limit(GET);
    const row = { uid: "uid-1", rule: "rule", cause: "no token left: burst 1, 1 each second" };
    expect(policies.report.rules).toEqual([{ ...row, opened: true, sinceMs: openedMs, halfOpen: false }]);
    // Nobody sends anything.
    await clock.advance(10_000);
    expect(policies.report.rules).toEqual([{ ...row, opened: true, sinceMs: openedMs + 10_000, halfOpen: true }]);
    await clock.advance(10_000);
    const test = policies.limit(GET);
    if (test.kind === "permitted") test.permit.settle({ kind: "answered", status: 200, tookMs: 1 });
    expect(policies.report.rules).toEqual([{ ...row, opened: false, sinceMs: openedMs + 20_000, halfOpen: false, cause: "" }]);
  });

  it("forgets a rule that is gone", () => {
    const { policies } = runningPolicies({ limits: [limitRule(BREAKER)] });
    for (let i = 0; i < 2; i++) policies.limit(GET);
    policies.enforce({ limits: [], faults: [], egress: [] }, "other");
    expect(policies.report).toEqual({ digest: "other", rules: [] });
  });

  it("leaves out a rule while it is off, and has its breaker open when it comes back (D10)", () => {
    const { policies } = runningPolicies({ limits: [limitRule(BREAKER)] });
    for (let i = 0; i < 2; i++) policies.limit(GET);
    policies.enforce(NO_POLICIES, "none");
    expect(policies.report).toEqual({ digest: "none", rules: [] });
    policies.enforce({ ...NO_POLICIES, limits: [limitRule(BREAKER)] }, "again");
    expect(policies.report).toMatchObject({ digest: "again", rules: [{ opened: true }] });
  });

  it("lists 64 rules at most, open ones first", () => {
    const limits = Array.from({ length: 80 }, (_, at) => limitRule(BREAKER, { name: `rule-${at}` }));
    const { policies } = runningPolicies({ limits });
    for (let i = 0; i < 2; i++) policies.limit(GET);
    expect(policies.report.rules).toHaveLength(64);
  });
});

describe("a change of a breaker", () => {
  /** A logger that keeps its lines. */
  function recording() {
    const lines: string[] = [];
    const line = (level: string) => (fields: { reason?: string; cause?: string; mode?: string }, text: string) =>
      lines.push(`${level} ${text} (${fields.mode}, ${fields.reason}, ${fields.cause})`);
    return { lines, log: { ...silentLogger(), warn: line("warn"), info: line("info") } as unknown as Logger };
  }

  it("is logged and counted with its cause, and half-opening needs no request (D7)", async () => {
    const { lines, log } = recording();
    const { policies, clock, registry } = runningPolicies({ limits: [limitRule(BREAKER)] }, log);
    for (let i = 0; i < 5; i++) policies.limit(GET);
    const gauge = async () => /breaker_open\{rule="guard\/rule"\} 1/.test(await registry.metrics());
    expect(await gauge()).toBe(true);
    await clock.advance(10_000);
    expect(await gauge()).toBe(false);
    policies.enforce({ ...NO_POLICIES, limits: [limitRule(BREAKER, { recovery: "by hand" })] }, "next");
    const cause = "no token left: burst 1, 1 each second";
    expect(lines).toEqual([
      `warn a breaker has opened (Enforce, rate, ${cause})`,
      `info a breaker is half-open: the next requests test the server (Enforce, window, ${cause})`,
      "info a breaker has closed (Enforce, recovery, )",
    ]);
    const text = await registry.metrics();
    for (const labels of ['to="Opened",cause="rate"', 'to="HalfOpen",cause="window"', 'to="Closed",cause="recovery"'])
      expect(text).toContain(`ctrlmesh_proxy_breaker_transitions_total{rule="guard/rule",${labels}} 1`);
    expect(clock.pending).toBe(0);
  });

  it("in the shadow is logged and not counted", async () => {
    const { lines, log } = recording();
    const { policies, registry } = runningPolicies({ limits: [limitRule(BREAKER, { mode: "Shadow" })] }, log);
    for (let i = 0; i < 2; i++) policies.limit(GET);
    expect(lines).toEqual(["warn a breaker has opened (Shadow, rate, no token left: burst 1, 1 each second)"]);
    expect(await registry.metrics()).not.toMatch(/transitions_total\{/);
  });

  it("has its own label, however many rules have decided before (D26)", async () => {
    const calm = Array.from({ length: 100 }, (_, at) =>
      limitRule({ kind: "bucket", perSecond: 1, burst: 1_000 }, { name: `calm-${at}` }),
    );
    const { policies, registry } = runningPolicies({ limits: [...calm, limitRule(BREAKER, { name: "last" })] });
    for (let i = 0; i < 2; i++) policies.limit(GET);
    const text = await registry.metrics();
    expect(text).toContain('breaker_open{rule="guard/last"} 1');
    expect(text).toContain('breaker_transitions_total{rule="guard/last",to="Opened",cause="rate"} 1');
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
