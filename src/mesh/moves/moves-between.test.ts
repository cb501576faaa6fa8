import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  fence,
  group,
  limit,
  objectLimit,
  objects,
  retained,
  sharded,
  snapshot,
  subset,
  table,
} from "../../../test/support/route-table.ts";
import { type Routes, routes } from "../../../test/support/test-routes.ts";
import { enforced } from "../ownership/enforced.ts";
import { readViewOf, type Snapshot } from "../ownership/snapshot.ts";
import type { RouteRule } from "../ownership/table.ts";
import { MAX_NAMED, type Moves, movesBetween } from "./moves-between.ts";

const between = (before: Snapshot, now: Snapshot) => movesBetween(enforced(before), enforced(now));
const many = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`);

describe("what moves for a resource of a subset", () => {
  const moves = (before: Routes, now: Routes) => between(routes(1, before), routes(2, now)).of({ group: "", resource: "pods" });

  it.each<[string, Routes, Routes, readonly string[] | undefined]>([
    ["nothing", { blue: ["a"], defaultSubset: ["b"] }, { blue: ["a"], defaultSubset: ["b"] }, []],
    ["a gain", { blue: ["a"], defaultSubset: ["b"] }, { blue: ["a", "b"] }, ["b"]],
    ["a loss", { blue: ["a", "b"] }, { blue: ["a"], defaultSubset: ["b"] }, ["b"]],
    ["a gain and a loss", { blue: ["a"], defaultSubset: ["b"] }, { blue: ["b"], defaultSubset: ["a"] }, ["a", "b"]],
    ["a fence", { blue: ["a"] }, { blue: ["a"], fenced: ["a"] }, ["a"]],
    ["a grant after a fence", { fenced: ["a"] }, { blue: ["a"] }, ["a"]],
    ["a fence of another subset's", { defaultSubset: ["a"] }, { defaultSubset: ["a"], fenced: ["a"] }, []],
    ["a loss of what is retained", { blue: ["a"] }, { defaultSubset: ["a"], retained: ["a"] }, []],
    ["what was retained, back", { defaultSubset: ["a"], retained: ["a"] }, { blue: ["a"] }, []],
    ["the end of what was retained", { defaultSubset: ["a"], retained: ["a"] }, { defaultSubset: ["a"] }, ["a"]],
    ["as much as can be named", { defaultSubset: many(MAX_NAMED) }, { blue: many(MAX_NAMED) }, many(MAX_NAMED)],
    ["more than can be named", { defaultSubset: many(MAX_NAMED + 1) }, { blue: many(MAX_NAMED + 1) }, undefined],
    ["one of many alike", { defaultSubset: many(99) }, { defaultSubset: many(98), blue: ["n98"] }, ["n98"]],
  ])("%s", (_, before, now, moved) => {
    const { isEverything, moved: found } = moves(before, now);
    expect([isEverything, found && [...found].sort()]).toEqual([false, moved && [...moved].sort()]);
  });

  it.each<[string, Routes, Routes, Partial<Moves>]>([
    ["a new namespace of the subset", { blue: ["a"] }, { blue: ["a", "n"] }, { born: new Map([["n", true]]), departed: [] }],
    ["another subset's", { blue: ["a"] }, { blue: ["a"], defaultSubset: ["n"] }, { born: new Map([["n", false]]) }],
    ["one that only a fence names", { blue: ["a"] }, { blue: ["a"], fenced: ["n"] }, { born: new Map([["n", false]]) }],
    ["one that is fenced", { blue: ["a"] }, { blue: ["a", "n"], fenced: ["n"] }, { born: new Map([["n", false]]) }],
    ["a deleted namespace of the subset", { blue: ["a", "n"] }, { blue: ["a"] }, { born: new Map(), departed: ["n"] }],
    ["another subset's, deleted", { blue: ["a"], defaultSubset: ["n"] }, { blue: ["a"] }, { departed: [] }],
    ["one that was retained, deleted", { defaultSubset: ["n"], retained: ["n"] }, {}, { departed: ["n"] }],
  ])("%s does not move, but is born or departs", (_, before, now, expected) => {
    expect(moves(before, now)).toMatchObject({ isEverything: false, moved: [], ...expected });
  });

  it("names buckets of cluster-scoped names, also where only one of the tables divides them", () => {
    const rules = [sharded(group("", "pods")), subset("blue"), subset("green")];
    const family = (members: Readonly<Record<string, readonly number[]>>, more = rules) =>
      snapshot(table(more, { "": [1], a: [1], ...members }), { subset: "blue" });
    const moves = (before: Snapshot, now: Snapshot) => {
      const { isEverything, moved } = between(before, now).of({ group: "", resource: "pods" });
      return [isEverything, moved];
    };
    const [atHome, byName] = [family({}), family({ "#1": [1], "#2": [2] })];
    expect(moves(atHome, byName)).toEqual([false, ["#2"]]);
    expect(moves(byName, atHome)).toEqual([false, ["#2"]]);
    // A namespace that is new has the same class before and now as the bucket, and is no move.
    expect(moves(atHome, family({ "#1": [1], "#2": [2], n: [2] }))).toEqual([false, ["#2"]]);
    expect(moves(byName, family({ "#1": [2], "#2": [2], a: [2] }))).toEqual([false, ["a", "#1"]]);
    const crowd = (shard: number) => Object.fromEntries(many(MAX_NAMED + 1).map((name) => [name, [shard]]));
    expect(moves(family({ "#1": [1], ...crowd(1) }), family({ "#1": [2], ...crowd(2) }))).toEqual([true, []]);
    // Labels say which objects moved, and nothing remembers that of a bucket.
    const labelled = [...rules, objectLimit("t", group("", "pods"))];
    expect(moves(family({ "#1": [1] }, labelled), family({ "#1": [2] }, labelled))).toEqual([true, []]);
  });

  it("names every namespace that has left the table, whoever owned it", () => {
    const before = routes(1, { blue: ["a", "b"], defaultSubset: ["c"], fenced: ["d"] });
    expect(between(before, routes(2, { blue: ["a"] })).removed).toEqual(["b", "c", "d"]);
  });
});

describe("everything counts as moved", () => {
  const FOOS = group("demo.io", "foos");
  const [gold, silver] = ["gold", "silver"].map((tier) => objects("gold", `tier=${tier}`, FOOS));
  const under = (own: string, rules: readonly (RouteRule | undefined)[]) =>
    snapshot(
      table(
        rules.filter((rule) => rule !== undefined),
        { a: [], b: [] },
      ),
      { subset: own },
    );

  it.each<[string, string, readonly (RouteRule | undefined)[], readonly (RouteRule | undefined)[], boolean]>([
    ["objects move by their labels, to a subset", "gold", [gold], [silver], true],
    ["objects move by their labels, from the default subset", "", [], [gold], true],
    ["objects move by their labels, back", "", [gold], [], true],
    ["the whole resource begins to move", "gold", [gold], [gold, fence(FOOS)], true],
    ["the whole resource has moved", "gold", [gold, fence(FOOS)], [gold], true],
    [
      "unnamed namespaces are not the subset's any more",
      "",
      [objectLimit("x", FOOS)],
      [objectLimit("x", FOOS), limit(FOOS)],
      true,
    ],
    ["a later rule changes nothing", "gold", [gold], [gold, objects("late", "x", FOOS)], false],
  ])("%s", (_, own, before, now, isEverything) => {
    const moves = between(under(own, before), under(own, now));
    expect(moves.of({ group: "demo.io", resource: "foos" }).isEverything).toBe(isEverything);
    expect(moves.of({ group: "demo.io", resource: "bars" }).isEverything).toBe(false);
  });

  it("the cluster scope of a sharded family moves: for named resources only, and it is never named as a namespace", () => {
    const family = (home: number[], mover: number) =>
      snapshot(table([sharded(FOOS), subset("s1"), subset("s2")], { "": home, own: [1], mover: [mover] }), { subset: "s1" });
    const foos = { group: "demo.io", resource: "foos" };
    const change = between(family([1], 1), family([2], 2));
    expect([change.of(foos).isEverything, change.of({ ...foos, resource: "bars" }).isEverything]).toEqual([true, false]);
    const { moved, isEverything } = between(family([2], 1), family([2], 2)).of(foos);
    expect([isEverything, moved]).toEqual([false, ["mover"]]);
    const open = snapshot(table([], { own: [], mover: [] }));
    expect(between(family([1], 1), open).removed).toEqual([]);
  });

  it("other callers are served", () => {
    const callers = { userAgent: "", defaultOnlyUserAgents: ["kubectl"], stripManagedFields: false };
    const change = (now: Partial<Snapshot>) =>
      between(routes(1, {}), routes(2, {}, now)).of({ group: "", resource: "pods" }).isEverything;
    expect([change({}), change({ callers })]).toEqual([false, true]);
  });
});

it("is the same from one namespace of each class as from all", () => {
  const names = ["a", "b", "c", "d", "e"];
  const some = fc.subarray(names);
  const configMaps = [group("", "configmaps")];
  const rules = [subset("blue"), subset("canary", ...configMaps)];
  const tables = fc
    .record({
      known: some,
      blue: some,
      canary: some,
      fenced: fc.subarray(names, { maxLength: 3 }),
      isPublic: fc.boolean(),
      kept: fc.option(fc.tuple(some, some), { nil: undefined }),
      // Of a sharded family: the rules that contain the cluster scope, and whether it is fenced.
      home: fc.option(fc.record({ members: fc.subarray([1, 2]), isFenced: fc.boolean() }), { nil: undefined }),
    })
    .map(({ known, blue, canary, fenced, isPublic, kept: [all, maps] = [[], []], home }) => {
      const at = home === undefined ? 0 : 1;
      const members = known.map((name) => [
        name,
        [...(blue.includes(name) ? [at] : []), ...(canary.includes(name) ? [at + 1] : [])],
      ]);
      if (home !== undefined) members.push(["", home.members]);
      const only = maps.filter((name) => !all.includes(name));
      return table([...(home === undefined ? [] : [sharded(...configMaps)]), ...rules], Object.fromEntries(members), {
        sharedResources: isPublic ? configMaps : [],
        fenced: home?.isFenced ? [...fenced, ""] : fenced,
        retained: [retained(all), retained(only, ...configMaps)],
      });
    });
  fc.assert(
    fc.property(tables, tables, fc.constantFrom("", "blue"), fc.constantFrom("pods", "configmaps"), (one, two, own, resource) => {
      const [before, now] = [enforced(snapshot(one, { subset: own })), enforced(snapshot(two, { subset: own }))];
      const [old, next] = [readViewOf(before.view("", resource)), readViewOf(now.view("", resource))];
      const { isEverything, moved, born, departed } = movesBetween(before, now).of({ group: "", resource });
      if (isEverything) return;
      const changes = names.map((name) => ({ name, was: old.ownershipOf(name), is: next.ownershipOf(name) }));
      const areKnown = changes.filter(({ was, is }) => was !== "unknown" && is !== "unknown");
      const movedNames = areKnown.filter(({ was, is }) => (was === "own") !== (is === "own"));
      expect([...(moved ?? [])].sort()).toEqual(movedNames.map(({ name }) => name));
      // Nothing changes its owner unnoticed.
      const rest = changes.filter(({ name }) => !moved?.includes(name) && !born.has(name) && !departed.includes(name));
      expect(rest.filter(({ was, is }) => (was === "own") !== (is === "own"))).toEqual([]);
    }),
    { interruptAfterTimeLimit: 2_000, numRuns: 2_000 },
  );
});
