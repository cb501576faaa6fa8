import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ChosenClusters } from "../apps/chosen-clusters.ts";
import { LEAVE_MS, type SettledDecisions, settleDecisions } from "./settle-decisions.ts";

const decision = (...names: readonly string[]): ChosenClusters => new Map([["fleet", new Set(names)]]);
const MISSING: ChosenClusters = new Map();
/** What counts after each of these steps. */
function shown(...steps: readonly (readonly [atMs: number, now: ChosenClusters])[]) {
  let settled: SettledDecisions | undefined;
  return steps.map(([atMs, now]) => {
    settled = settleDecisions(settled, now, atMs);
    const names = settled.chosen.get("fleet");
    return [names && [...names].sort().join(" "), settled.againMs];
  });
}

describe("clusters that leave a PlacementDecision", () => {
  it("count for ten seconds more, and then no longer", () => {
    expect(
      shown([0, decision("eu", "us")], [500, decision("eu")], [LEAVE_MS, decision("eu")], [LEAVE_MS + 500, decision("eu")]),
    ).toEqual([
      ["eu us", undefined],
      ["eu us", LEAVE_MS],
      ["eu us", 500],
      ["eu", undefined],
    ]);
  });

  it("that come back in another slice have never left", () => {
    expect(shown([0, decision("eu", "us")], [500, decision("eu")], [900, decision("eu", "us")], [950, decision("us")])).toEqual([
      ["eu us", undefined],
      ["eu us", LEAVE_MS],
      ["eu us", undefined],
      ["eu us", LEAVE_MS],
    ]);
  });

  it("count when a decision that was replaced has only its first slice yet", () => {
    expect(shown([0, decision("eu", "us")], [500, MISSING], [900, decision("eu")], [LEAVE_MS + 500, decision("eu")])).toEqual([
      ["eu us", undefined],
      [undefined, LEAVE_MS],
      ["eu us", LEAVE_MS - 400],
      ["eu", undefined],
    ]);
  });
});

it("a decision that stays as it is counts as it is after ten seconds, whatever it was before", () => {
  const chosen = fc.option(fc.uniqueArray(fc.constantFrom("a", "b", "c", "d")), { nil: undefined });
  fc.assert(
    fc.property(fc.array(fc.tuple(chosen, fc.integer({ min: 0, max: 20_000 }))), chosen, (steps, last) => {
      const read = (names: readonly string[] | undefined) => (names === undefined ? MISSING : decision(...names));
      let nowMs = 0;
      let settled: SettledDecisions | undefined;
      for (const [names, waitMs] of steps) {
        settled = settleDecisions(settled, read(names), nowMs);
        // What a decision names always counts, and what counts is named now or was so just before.
        for (const name of names ?? []) expect(settled.chosen.get("fleet")).toContain(name);
        nowMs += waitMs;
      }
      settled = settleDecisions(settled, read(last), nowMs);
      settled = settleDecisions(settled, read(last), nowMs + LEAVE_MS);
      expect([settled.chosen, settled.againMs]).toEqual([read(last), undefined]);
    }),
  );
});
