import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { policyRequest } from "../../../test/support/policies.ts";
import type { Population } from "../policy-request.ts";
import { createLimiter } from "./create-limiter.ts";
import { createDeleteBudget } from "./delete-budget.ts";

const SPEC = { percent: 10, atLeast: 2, intervalMs: 60_000, namespaces: ["*"] };
const populationOf = (byNamespace: Readonly<Record<string, number>>): Population => {
  const entries = Object.entries(byNamespace);
  return { total: entries.reduce((sum, [, count]) => sum + count, 0), byNamespace: new Map(entries) };
};

function setUp(population: Population | undefined, spec = SPEC) {
  const budget = createDeleteBudget(spec);
  const world = { population };
  const send = (line: string, nowMs = 0): boolean => {
    const request = { ...policyRequest(line), population: () => world.population };
    const isPassed = budget.ask(request, nowMs).kind === "pass";
    if (isPassed) budget.charge(request, nowMs);
    return isPassed;
  };
  const pods = (count: number, nowMs = 0) => {
    let passed = 0;
    for (let at = 0; at < count; at++) if (send(`DELETE /api/v1/namespaces/a/pods/p-${at}`, nowMs)) passed++;
    return passed;
  };
  const figure = (line: string) => budget.figure({ ...policyRequest(line), population: () => world.population }, 0);
  return { budget, world, send, pods, figure };
}

it("lets a tenth of the objects be deleted in an interval, by deletes and by evictions", () => {
  const { send, pods } = setUp(populationOf({ a: 100, b: 50 }));
  expect(pods(14)).toBe(14);
  expect(send("POST /api/v1/namespaces/a/pods/q/eviction")).toBe(true);
  expect([pods(1), send("POST /api/v1/namespaces/a/pods/q/eviction")]).toEqual([0, false]);
  expect(pods(100, 30_000)).toBe(7);
});

it("with few objects, or while they are not counted, atLeast may be deleted", () => {
  expect(setUp(populationOf({ a: 3 })).pods(10)).toBe(2);
  expect(setUp(undefined).pods(10)).toBe(2);
});

it("a deletecollection costs what it would delete", () => {
  const { send, pods } = setUp(populationOf({ a: 95, b: 5 }));
  expect(send("DELETE /api/v1/namespaces/a/pods")).toBe(false);
  expect(send("DELETE /api/v1/namespaces/b/pods")).toBe(true);
  expect(pods(10)).toBe(5);
});

it("a deletecollection whose objects are not counted yet has to come again", () => {
  const { world, send, figure } = setUp(undefined);
  const line = "DELETE /api/v1/namespaces/a/pods";
  expect(send(line)).toBe(false);
  expect(figure(line)).toBe("the objects that a deletecollection would delete are not counted yet");
  world.population = populationOf({ a: 1, b: 50 });
  expect(send(line)).toBe(true);
});

it("only the namespaces of the rule make the share, and each resource counts by itself", () => {
  const { send, pods } = setUp(populationOf({ a: 30, b: 1_000 }), { ...SPEC, namespaces: ["a"] });
  expect(pods(10)).toBe(3);
  expect(send("DELETE /api/v1/namespaces/a/secrets/s")).toBe(true);
  expect(send("GET /api/v1/namespaces/a/pods/p")).toBe(true);
});

it("says why it refuses", () => {
  const { pods, figure } = setUp(populationOf({ a: 30 }));
  pods(3);
  expect(figure("DELETE /api/v1/namespaces/a/pods/p")).toBe(
    "3 deleted lately, and 1 more would exceed 3 (10 % of 30 objects, at least 2)",
  );
});

it("no interval has more than twice the share, and a pause of an interval always gives the share again", () => {
  const waits = fc.array(fc.record({ waitMs: fc.nat({ max: 20_000 }), count: fc.nat({ max: 20 }) }), { maxLength: 40 });
  fc.assert(
    fc.property(waits, (steps) => {
      const { pods } = setUp(populationOf({ a: 100 }));
      const passed: { readonly atMs: number; readonly count: number }[] = [];
      let nowMs = 0;
      for (const { waitMs, count } of steps) {
        nowMs += waitMs;
        passed.push({ atMs: nowMs, count: pods(count, nowMs) });
        const within = passed.filter(({ atMs }) => atMs > nowMs - SPEC.intervalMs);
        expect(within.reduce((sum, each) => sum + each.count, 0)).toBeLessThanOrEqual(20);
      }
      expect(pods(20, nowMs + SPEC.intervalMs)).toBe(10);
    }),
  );
});

describe("a breaker with maxDeleted", () => {
  const spec = { kind: "breaker" as const, deletes: SPEC, sleepMs: 1_000 };
  const setUpBreaker = (population: Population | undefined) => {
    const moves: string[] = [];
    const breaker = createLimiter({
      spec,
      startMs: 0,
      recovery: "",
      moved: (to, _reason, figure) => void moves.push(`${to}: ${figure}`),
      wanted: () => undefined,
    });
    const send = (line: string) => {
      const request = { ...policyRequest(line), population: () => population };
      const decision = breaker.ask(request, 0);
      if (decision.kind === "pass") breaker.charge(request, 0);
      else breaker.refuse?.(request, 0);
      return decision.kind;
    };
    return { breaker, moves, send };
  };

  it("opens at the first delete beyond the share, and says why", () => {
    const { moves, send } = setUpBreaker(populationOf({ a: 10 }));
    const kinds = [1, 2, 3].map(() => send("DELETE /api/v1/namespaces/a/pods/p"));
    expect([kinds, moves]).toEqual([
      ["pass", "pass", "open"],
      ["Opened: 2 deleted lately, and 1 more would exceed 2 (10 % of 10 objects, at least 2)"],
    ]);
  });

  it("does not open for a deletecollection whose objects are not counted yet", () => {
    const { moves, send } = setUpBreaker(undefined);
    expect([send("DELETE /api/v1/namespaces/a/pods"), moves]).toEqual(["limited", []]);
  });

  it("keeps what was deleted over an edit of the share, and begins anew with a bucket", () => {
    const { breaker, send } = setUpBreaker(populationOf({ a: 10 }));
    send("DELETE /api/v1/namespaces/a/pods/p");
    expect(breaker.edit({ ...spec, deletes: { ...SPEC, atLeast: 1 } }, 0)).toBe(true);
    expect(send("DELETE /api/v1/namespaces/a/pods/p")).toBe("open");
    expect(breaker.edit({ kind: "breaker", bucket: { perSecond: 1, burst: 5 }, sleepMs: 1_000 }, 0)).toBe(true);
    expect(breaker.figures(0).tokens).toBe(5);
  });
});

it("a deletecollection in a namespace that could not be counted is refused, not free", () => {
  const { send, figure } = setUp({ ...populationOf({ a: 100 }), isPartial: true });
  expect(send("DELETE /api/v1/namespaces/b/pods")).toBe(false);
  expect(figure("DELETE /api/v1/namespaces/b/pods")).toContain("not counted yet");
  expect(send("DELETE /api/v1/pods")).toBe(false);
});

it("a deletecollection in a namespace without objects is free once all namespaces are counted", () => {
  expect(setUp(populationOf({ a: 100 })).send("DELETE /api/v1/namespaces/b/pods")).toBe(true);
});
