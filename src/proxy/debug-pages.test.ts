import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../test/support/fake-clock.ts";
import { egressRule, limitRule, policyRequest } from "../../test/support/policies.ts";
import { group, retained, sharded, snapshot, subset, table } from "../../test/support/route-table.ts";
import { runningPolicies } from "../../test/support/running-policies.ts";
import { silentLogger } from "../base/log.ts";
import { ownerPage, policiesPage, requestsPage, snapshotPage } from "./debug-pages.ts";
import { createAccessLog } from "./observe/access-log.ts";

describe("/debug/snapshot", () => {
  it("shows what is enforced", () => {
    const of = snapshot(
      table([subset("v2")], { prod: [], pilot: [0], a: [0] }, { fenced: ["a"], retained: [retained(["prod"])] }),
      { subset: "v2" },
    );
    expect(snapshotPage(of)).toEqual({
      version: 1,
      digest: "digest-1",
      app: { namespace: "shop", name: "app" },
      subset: "v2",
      podNamespace: "shop",
      lock: { name: "shop-lock", upstream: "shop-lock---v2" },
      rules: { total: 1, first: [subset("v2")], truncated: false },
      sharedResources: { total: 0, first: [], truncated: false },
      namespaces: {
        total: 3,
        classes: {
          total: 2,
          first: [
            { rules: [], namespaces: { total: 1, first: ["prod"], truncated: false } },
            { rules: [0], namespaces: { total: 2, first: ["a", "pilot"], truncated: false } },
          ],
          truncated: false,
        },
      },
      fenced: { total: 1, first: ["a"], truncated: false },
      retained: { total: 1, first: ["prod"], truncated: false },
      callers: { userAgent: "", defaultOnlyUserAgents: [], stripManagedFields: false },
      guard: "Enforce",
      frozen: [],
    });
  });

  it("names the cluster scope of a sharded family, and does not count it as a namespace", () => {
    const of = snapshot(table([sharded(group("", "pods")), subset("s1")], { "": [1], prod: [1] }, { fenced: [""] }));
    expect(snapshotPage(of)).toMatchObject({
      namespaces: { total: 1, classes: { first: [{ rules: [1], namespaces: { first: ["(cluster scope)", "prod"] } }] } },
      fenced: { first: ["(cluster scope)"] },
    });
  });

  it("is bounded, however many namespaces there are, and says that something is left out", () => {
    const names = Array.from({ length: 20_000 }, (_, index) => `namespace-${index}`);
    const of = snapshot(table([subset("v2")], Object.fromEntries(names.map((name) => [name, [0]])), { fenced: names }));
    const text = JSON.stringify(snapshotPage(of));
    expect(text.length).toBeLessThan(10_000);
    expect(text).toContain('"total":20000');
    expect(text).toContain('"truncated":true');
  });

  it("says when there is no snapshot", () => {
    expect(snapshotPage(undefined)).toEqual({ snapshot: null });
  });
});

describe("/debug/policies", () => {
  const GET = policyRequest("GET /api/v1/namespaces/a/pods/p");
  const breaker = limitRule({ kind: "breaker", bucket: { perSecond: 0.1, burst: 1 }, sleepMs: 60_000 }, { name: "guard" });

  it("shows how close each rule is to its limit, and breakers that are not closed first, with their cause and time", async () => {
    const limits = [limitRule({ kind: "bucket", perSecond: 1, burst: 5 }, { name: "rate" }), breaker];
    const { policies, clock } = runningPolicies({ limits, egress: [egressRule("Deny", [{ host: "a.example" }])] });
    policies.limit(GET);
    policies.limit(GET);
    const since = new Date(clock.now()).toISOString();
    await clock.advance(500);
    const head = { kind: "CircuitBreaker", object: "shop/guard", mode: "Enforce" };
    const { limiter } = breaker;
    const cause = "no token left: burst 1, 1 each 10 s";
    expect(policiesPage(policies)).toEqual({
      rules: {
        total: 3,
        truncated: false,
        first: [
          { ...head, rule: "guard", limiter, state: "Opened", since, cause, secondsLeft: 60, tokens: 0.05 },
          { ...head, rule: "rate", limiter: { kind: "bucket", perSecond: 1, burst: 5 }, state: "Closed", tokens: 4.5 },
          { ...head, rule: "rule", egress: { effect: "Deny", hosts: 1 } },
        ],
      },
    });
    await clock.advance(59_500);
    expect(policiesPage(policies)).toMatchObject({
      rules: { first: [{ state: "HalfOpen", tests: { underWay: 0, atMost: 1 } }, {}, {}] },
    });
  });

  it("is bounded, however many rules there are", () => {
    const limits = Array.from({ length: 4_096 }, (_, at) => ({ ...breaker, origin: { ...breaker.origin, rule: `rule-${at}` } }));
    const text = JSON.stringify(policiesPage(runningPolicies({ limits }).policies));
    expect(text.length).toBeLessThan(200_000);
    expect(text).toContain('"truncated":true');
  });
});

describe("/debug/owner", () => {
  const of = snapshot(table([subset("v2")], { prod: [], pilot: [0], a: [0] }, { fenced: ["a"] }), { subset: "v2" });
  const ask = (query: string) => ownerPage(new URLSearchParams(query), of);

  it("says who owns a namespace", () => {
    const known = { app: { namespace: "shop", name: "app" }, subset: "v2", version: 1 };
    expect(ask("namespace=pilot")).toEqual({ ...known, namespace: "pilot", owner: 'subset "v2"' });
    expect(ask("namespace=prod")).toEqual({ ...known, namespace: "prod", owner: "the default subset" });
    expect(ask("namespace=new")).toEqual({ ...known, namespace: "new", owner: "not known yet" });
    expect(ownerPage(new URLSearchParams("namespace=pilot"), undefined)).toEqual({ namespace: "pilot", owner: null });
  });

  it("refuses a request without a namespace", () => {
    for (const query of ["", "namespace=", `namespace=${"x".repeat(254)}`])
      expect(() => ask(query)).toThrow(/^namespace: must be/);
  });
});

describe("/debug/requests", () => {
  function setup() {
    const clock = createFakeClock();
    const accessLog = createAccessLog({ share: 0, random: () => 0, log: silentLogger() });
    const page = requestsPage({ accessLog, clock });
    const reader = new AbortController();
    const ask = async (query: string) => page(new URLSearchParams(query), reader.signal);
    return { clock, accessLog, ask, reader };
  }

  it("answers with the next requests as soon as it has enough", async () => {
    const { accessLog, ask } = setup();
    const answer = ask("count=2");
    for (const code of [1, 2, 3]) accessLog.pick()?.({ code });
    expect(await answer).toEqual({ requests: [{ code: 1 }, { code: 2 }] });
    expect(accessLog.pick()).toBeUndefined();
  });

  it("answers with what it has when time is over or its reader goes, and then costs nothing", async () => {
    const { accessLog, ask, clock, reader } = setup();
    const first = ask("seconds=5");
    accessLog.pick()?.({ code: 1 });
    await clock.advance(5_000);
    expect(await first).toEqual({ requests: [{ code: 1 }] });
    const second = ask("");
    reader.abort();
    expect(await second).toEqual({ requests: [] });
    expect([accessLog.pick(), clock.pending]).toEqual([undefined, 0]);
  });

  it("is bounded in number, time and readers", async () => {
    const { ask } = setup();
    await expect(ask("count=100000")).rejects.toThrow('count: "100000" is not a whole number from 1 to 1000');
    await expect(ask("seconds=0")).rejects.toThrow("seconds");
    await expect(ask("seconds=x")).rejects.toThrow("seconds");
    for (let readers = 0; readers < 4; readers++) void ask("");
    await expect(ask("")).rejects.toThrow("4 readers at once are enough");
  });
});
