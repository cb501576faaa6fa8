import { describe, expect, it } from "vitest";
import { ALL_OBJECTS, policyRequest } from "../../../test/support/policies.ts";
import { seededRandom } from "../../../test/support/random.ts";
import type { Random } from "../../base/clock.ts";
import { createMatcher, type Matcher } from "../matcher.ts";
import type { FaultRule } from "../policy.ts";
import { drawAbort, drawDelay } from "./faults.ts";

const origin = { kind: "FaultInjection", namespace: "shop", name: "storm", uid: "uid-1", rule: "rule" } as const;
const fault = (changes: Partial<FaultRule>): FaultRule => ({ origin, mode: "Enforce", match: ALL_OBJECTS, ...changes });
const GET = policyRequest("GET /api/v1/namespaces/a/pods/p");

function draw(rules: readonly FaultRule[], randoms: readonly number[], nowMs = 0) {
  const left = [...randoms];
  return drawBy(createMatcher(rules), () => left.shift() ?? expect.fail("one number too many is drawn"), nowMs);
}

function drawBy(matcher: Matcher<FaultRule>, random: Random, nowMs = 0) {
  const fired: { readonly rule: FaultRule; readonly what: string }[] = [];
  const deps = { matcher, random, fired: (rule: FaultRule, what: string) => fired.push({ rule, what }) };
  const delayMs = drawDelay(GET, nowMs, deps)?.ms ?? 0;
  return { delayMs, abort: drawAbort(GET, nowMs, deps), fired };
}

describe("a fault", () => {
  const delay = { ms: 100, percent: 50 };
  const abort = { status: 503, percent: 25 };

  it("draws delay and abort independently of each other", () => {
    const rule = fault({ delay, abort });
    expect(draw([rule], [0.49, 0.25])).toEqual({ delayMs: 100, fired: [{ rule, what: "delay" }] });
    expect(draw([rule], [0.5, 0.24])).toEqual({ delayMs: 0, abort: { status: 503, rule }, fired: [{ rule, what: "abort" }] });
    expect(draw([rule], [0.5, 0.25])).toEqual({ delayMs: 0, fired: [] });
  });

  it("fires in its share of the requests", () => {
    const random = seededRandom(1);
    const matcher = createMatcher([fault({ delay, abort })]);
    const draws = Array.from({ length: 20_000 }, () => drawBy(matcher, random));
    const delayed = draws.filter(({ delayMs }) => delayMs > 0).length;
    const aborted = draws.filter(({ abort: by }) => by !== undefined).length;
    const both = draws.filter(({ delayMs, abort: by }) => delayMs > 0 && by !== undefined).length;
    // Six standard deviations.
    const bound = (share: number) => 6 * Math.sqrt(share * (1 - share) * draws.length);
    expect(Math.abs(delayed - 10_000)).toBeLessThan(bound(0.5));
    expect(Math.abs(aborted - 5_000)).toBeLessThan(bound(0.25));
    expect(Math.abs(both - 2_500)).toBeLessThan(bound(0.125));
  });

  it("never fires at 0 percent and always at 100", () => {
    expect(draw([fault({ abort: { status: 500, percent: 0 } })], [0]).abort).toBeUndefined();
    expect(draw([fault({ abort: { status: 500, percent: 100 } })], [0.999999]).abort?.status).toBe(500);
  });

  it("of several rules: delays add up to 30 s at most, and the first abort counts", () => {
    const long = { ms: 20_000, percent: 100 };
    const rules = [
      fault({ delay: long }),
      fault({ delay: long, abort: { status: 500, percent: 100 } }),
      fault({ abort: { status: 429, percent: 100 } }),
    ];
    expect(draw(rules, [0, 0, 0, 0])).toMatchObject({ delayMs: 30_000, abort: { status: 500 } });
  });

  it("in the shadow fires and changes nothing", () => {
    const rule = fault({ mode: "Shadow", delay, abort });
    expect(draw([rule], [0, 0])).toEqual({
      delayMs: 0,
      fired: [
        { rule, what: "delay" },
        { rule, what: "abort" },
      ],
    });
  });

  it("outside of its time draws nothing", () => {
    const effective = { startSecond: 3_600, endSecond: 7_200, daysOfWeek: [], daysOfMonth: [], months: [] };
    const rule = fault({ abort: { status: 500, percent: 100 }, effective });
    expect(draw([rule], []).fired).toEqual([]);
    expect(draw([rule], [0], 3_600_000).fired).toHaveLength(1);
  });

  it("draws nothing from its end on", () => {
    const rule = fault({ abort: { status: 500, percent: 100 }, untilMs: 1_000 });
    expect(draw([rule], [0], 999).fired).toHaveLength(1);
    expect(draw([rule], [], 1_000).fired).toEqual([]);
  });
});
