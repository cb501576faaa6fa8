import { expect, test } from "vitest";
import { type Figures, judge, PROMISED } from "./judge.ts";
import type { Summary } from "./series.ts";

const quick: Summary = { count: 100, failed: 0, p50Ms: 1, p99Ms: 4, maxMs: 9, longestGapMs: 210, failure: "" };
const good: Figures = {
  manager: { review: quick },
  sidecar: { get: { ...quick, p99Ms: 4.9 } },
  aside: { get: quick },
  moves: { ...quick, maxMs: 3_000 },
  control: { ...quick, p99Ms: 0, longestGapMs: 0 },
  vitals: { rssMb: { manager: 300, "foo-operator-0": 150 }, oldestLeaseMs: 4_000, leaseTransitions: 0 },
  deaths: { manager: [], "foo-operator-0": [] },
};
const broken = (figures: Partial<Figures>) =>
  judge({ ...good, ...figures }, PROMISED)
    .filter(({ isKept }) => !isKept)
    .map(({ what }) => what);

test("a manager and sidecars that keep what is promised pass", () => {
  expect(broken({})).toEqual([]);
});

test.each<[string, Partial<Figures>, string]>([
  ["slow", { manager: { review: { ...quick, p99Ms: 1_001 } } }, "review: p99"],
  ["refused for long", { manager: { review: { ...quick, longestGapMs: 5_001 } } }, "review: longest time without service"],
  ["never asked", { sidecar: { get: { ...quick, count: 0 } } }, "get: longest time without service"],
  ["slower than beside the attack", { sidecar: { get: { ...quick, p99Ms: 5.1 } } }, "get: added to p99 4 ms"],
  ["without a move", { moves: { ...quick, maxMs: 30_001 } }, "moves: longest (100, 0 failed)"],
  ["large", { vitals: { ...good.vitals, rssMb: { manager: 401 } } }, "manager: RSS"],
  ["without a leader", { vitals: { ...good.vitals, leaseTransitions: 1 } }, "changes of the leader"],
  ["dead", { deaths: { manager: ["out of memory"] } }, "manager: ended by itself"],
])("a mesh that is %s fails, and the verdict says where", (_, figures, what) => {
  expect(broken(figures)).toEqual([what]);
});

test("what the machine itself takes is no fault of the mesh", () => {
  const slow = { ...quick, p99Ms: 1_500, longestGapMs: 6_000 };
  expect(broken({ manager: { review: slow } })).toHaveLength(2);
  expect(broken({ manager: { review: slow }, control: { ...quick, p99Ms: 600, longestGapMs: 1_100 } })).toEqual([]);
});
