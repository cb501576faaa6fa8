import fc from "fast-check";
import { expect, it } from "vitest";
import { policyRequest } from "../../../test/support/policies.ts";
import { createObjectBuckets, MAX_OBJECTS } from "./object-buckets.ts";

const SPEC = { perSecond: 1, burst: 2 };
const request = (name: string, verb = "PUT") => policyRequest(`${verb} /api/v1/namespaces/a/pods/${name}`);

function setUp(spec = SPEC) {
  const limiter = createObjectBuckets(spec, 0);
  return {
    send(line: Parameters<typeof limiter.ask>[0], nowMs: number): boolean {
      if (limiter.ask(line, nowMs).kind !== "pass") return false;
      limiter.charge(line, nowMs);
      return true;
    },
  };
}

it("one object that is written over and over does not keep others from their tokens", () => {
  const { send } = setUp();
  expect([1, 2, 3, 4].map(() => send(request("hot"), 0))).toEqual([true, true, false, false]);
  expect([1, 2, 3].map(() => send(request("cool"), 0))).toEqual([true, true, false]);
  expect(send(request("hot"), 1_000)).toBe(true);
});

it("all verbs and subresources of an object share its bucket", () => {
  const { send } = setUp();
  expect(send(request("p"), 0)).toBe(true);
  expect(send(policyRequest("POST /api/v1/namespaces/a/pods/p/eviction"), 0)).toBe(true);
  expect(send(request("p", "DELETE"), 0)).toBe(false);
});

it("a request that names no object counts for its collection", () => {
  const { send } = setUp();
  const create = policyRequest("POST /api/v1/namespaces/a/pods");
  expect([send(create, 0), send(create, 0), send(create, 0)]).toEqual([true, true, false]);
  expect(send(policyRequest("POST /api/v1/namespaces/b/pods"), 0)).toBe(true);
});

it("beyond its bound of objects the others share one bucket, and get their own when there is room", () => {
  const { send } = setUp();
  for (let at = 0; at < MAX_OBJECTS; at++) send(request(`p-${at}`), 0);
  expect([send(request("late-1"), 0), send(request("late-2"), 0), send(request("late-3"), 0)]).toEqual([true, true, false]);
  expect(send(request("late-3"), 3_000)).toBe(true);
  expect(send(request("late-3"), 3_000)).toBe(true);
  expect(send(request("late-3"), 3_000)).toBe(false);
});

it("no object ever has more than its burst and its rate, whatever else is asked for", () => {
  const steps = fc.array(fc.record({ pod: fc.nat({ max: 3 }), flood: fc.boolean(), waitMs: fc.nat({ max: 1_500 }) }));
  fc.assert(
    fc.property(steps, (all) => {
      const { send } = setUp();
      const passed: number[] = [];
      let [nowMs, floods] = [0, 0];
      for (const { pod, flood, waitMs } of all) {
        nowMs += waitMs;
        if (flood) for (let at = 0; at <= MAX_OBJECTS; at++) send(request(`flood-${floods}-${at}`), nowMs);
        if (flood) floods++;
        if (send(request(`p-${pod}`), nowMs) && pod === 0) passed.push(nowMs);
      }
      for (const [first, from] of passed.entries()) {
        for (const [last, to] of passed.entries()) {
          if (last < first) continue;
          expect(last - first + 1).toBeLessThanOrEqual(SPEC.burst + ((to - from) / 1_000) * SPEC.perSecond + 1e-6);
        }
      }
    }),
    { numRuns: 15, seed: 1 },
  );
});

it("an edit leaves each object its tokens, as far as there is room, and is none of another kind (D10)", () => {
  const limiter = createObjectBuckets(SPEC, 0);
  const pass = (name: string) => {
    const isPassed = limiter.ask(request(name), 0).kind === "pass";
    if (isPassed) limiter.charge(request(name), 0);
    return isPassed;
  };
  expect([pass("hot"), pass("hot"), pass("cool")]).toEqual([true, true, true]);
  expect(limiter.edit({ kind: "bucket", perSecond: 1, burst: 10, per: "Object" }, 0)).toBe(true);
  expect([pass("hot"), pass("cool"), pass("cool")]).toEqual([false, true, false]);
  for (const per of [{}, { per: "Policy" as const }])
    expect(limiter.edit({ kind: "bucket", perSecond: 1, burst: 10, ...per }, 0)).toBe(false);
});

it("very long names, which no object has, share a bucket instead of filling the memory", () => {
  const limiter = createObjectBuckets(SPEC, 0);
  for (let at = 0; at < 100; at++) limiter.charge(request(`${"x".repeat(2_000)}${at}`), 0);
  expect(limiter.figures(0).objects).toBe(1);
});
