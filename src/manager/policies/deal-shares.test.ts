import fc from "fast-check";
import { expect, it } from "vitest";
import { WHOLE_BUDGET } from "../../policy/policy.ts";
import { dealShares, type Holder } from "./deal-shares.ts";

const idle = (held: number | undefined): Holder => ({ held, need: "base" });
const busy = (held: number | undefined): Holder => ({ held, need: "more" });
const sum = (shares: readonly number[]) => shares.reduce((total, share) => total + share, 0);

it("pods that hold nothing divide the budget evenly", () => {
  expect(dealShares([idle(0), idle(0), idle(0), idle(0)])).toEqual([250_000, 250_000, 250_000, 250_000]);
});

it("a pod that wants more gets nine tenths, once the others have given them up", () => {
  const first = dealShares([busy(500_000), idle(500_000)]);
  expect(first).toEqual([500_000, 50_000]);
  expect(dealShares([busy(500_000), idle(50_000)])).toEqual([950_000, 50_000]);
});

it("nothing grows while the share of one pod is not known", () => {
  expect(dealShares([busy(100_000), idle(undefined), idle(0)])).toEqual([100_000, 33_333, 0]);
});

it("a pod that joins gets its part from the others", () => {
  const first = dealShares([idle(500_000), idle(500_000), idle(0)]);
  expect(first).toEqual([333_333, 333_333, 0]);
  expect(dealShares([...first.slice(0, 2).map(idle), idle(0)])).toEqual([333_333, 333_333, 333_333]);
});

const holderArbitrary = fc.record<{ held: number; need: Holder["need"] }>({
  held: fc.integer({ min: 0, max: WHOLE_BUDGET }),
  need: fc.constantFrom("none", "base", "more"),
});
/** What pods may hold at the start is always within the budget. */
const holdersArbitrary = fc.array(holderArbitrary, { minLength: 1, maxLength: 40 }).map((holders) => {
  const all = Math.max(WHOLE_BUDGET, sum(holders.map(({ held }) => held)));
  return holders.map(({ held, need }) => ({ held: Math.floor((held * WHOLE_BUDGET) / all), need }));
});

it("shares that may be held never exceed the budget, whichever of the proxies have followed", () => {
  fc.assert(
    fc.property(holdersArbitrary, fc.array(fc.boolean(), { minLength: 40, maxLength: 40 }), (holders, follow) => {
      const next = dealShares(holders);
      const largest = holders.map(({ held }, at) => (follow[at] ? (next[at] ?? 0) : Math.max(held, next[at] ?? 0)));
      expect(sum(largest)).toBeLessThanOrEqual(WHOLE_BUDGET);
    }),
  );
});

it("two rounds in which all proxies follow give every pod its part, whatever they held", () => {
  fc.assert(
    fc.property(holdersArbitrary, (holders) => {
      const deal = (held: readonly number[]) => dealShares(holders.map(({ need }, at) => ({ held: held[at], need })));
      const settled = deal(deal(dealShares(holders)));
      const all = holders.filter(({ need }) => need !== "none").length;
      const needy = holders.filter(({ need }) => need === "more").length;
      const base = needy === 0 ? WHOLE_BUDGET / all : WHOLE_BUDGET / 10 / all;
      const due = { none: 0, base, more: base + (0.9 * WHOLE_BUDGET) / needy };
      for (const [at, share] of settled.entries()) {
        expect(Math.abs(share - due[holders[at]?.need ?? "none"])).toBeLessThanOrEqual(holders.length + 1);
      }
    }),
  );
});

it("a pod that the rule is not for any more gives its share to the others", () => {
  const leaving: Holder = { held: 600_000, need: "none" };
  expect(dealShares([leaving, idle(400_000)])).toEqual([0, 400_000]);
  expect(dealShares([{ ...leaving, held: 0 }, idle(400_000)])).toEqual([0, 1_000_000]);
});
