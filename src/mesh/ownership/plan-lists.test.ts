import { describe, expect, it } from "vitest";
import { type ListFacts, planLists } from "./plan-lists.ts";

const KB = 1_024;
const facts = (own: number, foreign: number, items: number, more: Partial<ListFacts> = {}): ListFacts => ({
  namespaces: { own, foreign },
  size: { items, bytes: items * 1.1 * KB },
  ...more,
});

describe("lists by namespace", () => {
  it.each([
    ["20 of 200 namespaces, 10,000 objects", 20, 180, 10_000, "by-namespace"],
    ["60 of 200 namespaces, 10,000 objects", 60, 140, 10_000, "by-namespace"],
    ["100 of 200 namespaces, 10,000 objects", 100, 100, 10_000, "one-list"],
    ["100 of 200 namespaces, 100,000 objects", 100, 100, 100_000, "by-namespace"],
    ["20 of 200 namespaces, 500 objects", 20, 180, 500, "one-list"],
    ["2 of 200 namespaces, 1,000 objects", 2, 198, 1_000, "by-namespace"],
    ["2 of 200 namespaces, 100 objects", 2, 198, 100, "one-list"],
    ["1,000 of 10,000 namespaces, 10,000 objects", 1_000, 9_000, 10_000, "one-list"],
    ["no objects", 20, 180, 0, "one-list"],
  ] as const)("%s: the cheaper way", (_what, own, foreign, items, way) => {
    expect(planLists(facts(own, foreign, items)).way).toBe(way);
  });

  it("are chosen the sooner, the fewer namespaces the subset owns and the larger the objects are", () => {
    const isChosen = (own: number, bytes: number) =>
      planLists({ namespaces: { own, foreign: 200 - own }, size: { items: 1_000, bytes } }).way === "by-namespace";
    for (const bytes of [100 * KB, 1_000 * KB, 10_000 * KB]) {
      const chosen = Array.from({ length: 200 }, (_, own) => isChosen(own + 1, bytes));
      expect(chosen).toEqual([...chosen].sort((a, b) => Number(b) - Number(a)));
    }
    for (const own of [5, 50]) {
      const chosen = Array.from({ length: 100 }, (_, index) => isChosen(own, index * 100 * KB));
      expect(chosen).toEqual([...chosen].sort());
      expect(new Set(chosen).size).toBe(2);
    }
  });

  it("are not chosen where the subset owns most of what the one list brings", () => {
    const chosenWith = (kept: number) => {
      const size = { items: 2_000, bytes: 2_000 * 1.3 * KB, kept };
      return planLists({ namespaces: { own: 20, foreign: 180 }, size }).way;
    };
    expect(chosenWith(2_000)).toBe("one-list");
    expect(chosenWith(1_000)).toBe("one-list");
    expect(chosenWith(100)).toBe("by-namespace");
  });

  it("are not chosen for an answer that could not be held, and say so", () => {
    const size = { items: 100_000, bytes: 100_000 * KB };
    const namespaces = { own: 20, foreign: 180 };
    expect(planLists({ namespaces, size, maxAnswerBytes: 4_000 * KB })).toMatchObject({ way: "one-list", why: "too-large" });
    expect(planLists({ namespaces, size, maxAnswerBytes: 20_000 * KB })).toMatchObject({ way: "by-namespace" });
  });

  it("come with the estimates of both ways", () => {
    const { oneListMs, byNamespaceMs } = planLists(facts(20, 180, 10_000));
    expect([Math.round(oneListMs), Math.round(byNamespaceMs)]).toEqual([164, 37]);
  });
});
