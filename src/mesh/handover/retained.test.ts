import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fence, group, limit, objects, sharded, subset, table, unreportedFence } from "../../../test/support/route-table.ts";
import { BUCKETS, isBucket } from "../../kube/place.ts";
import { isVisibleBy, type ResourceMatch, type RetainedClass, type RetainedRule, type RouteTable } from "../ownership/table.ts";
import { canonicalRules, retainedBetween } from "./retained.ts";

const maps = group("", "configmaps");
const pods = group("", "pods");
const before = table([subset("canary")], { prod: [], pilot: [0], mover: [] });
const after = table([subset("canary")], { prod: [], pilot: [0], mover: [0] });
const show = (from: RouteTable, to: RouteTable, as = "", now = as) =>
  retainedBetween({ subset: as, table: from }, { subset: now, table: to });
const allOf = (shown: readonly RetainedClass[]) =>
  Object.fromEntries(shown.flatMap(({ namespaces, rules }) => [...namespaces].map((name) => [name, rules])));
/** Without buckets. */
const text = (shown: readonly RetainedClass[]) =>
  Object.fromEntries(Object.entries(allOf(shown)).filter(([place]) => !isBucket(place)));
const ALL = [{ resources: [], visible: true }];
const shownTable = (from: RouteTable, to: RouteTable, as = "") => ({ ...to, retained: show(from, to, as) });

describe("retainedBetween", () => {
  it("retains the namespaces that the subset loses, and nothing else", () => {
    expect(text(show(before, after))).toEqual({ mover: ALL });
    expect(show(before, after, "canary")).toEqual([]);
    expect(show(before, before)).toEqual([]);
  });
  it("retains what is already retained, in an equal form, so that pods before and after the update get equal rules", () => {
    expect(show(shownTable(before, after), after)).toEqual(show(before, after));
    const later = table([subset("canary")], { prod: [0], pilot: [0], mover: [0] });
    expect(text(show(shownTable(before, after), later))).toEqual({ prod: ALL, mover: ALL });
  });
  it("retains nothing once the subset owns the namespaces again, as after an undo", () => {
    expect(show(shownTable(before, after), before)).toEqual([]);
  });
  it("retains namespaces that the subset gains back, while they are fenced", () => {
    const fenced = { ...before, fenced: new Set(["mover"]) };
    expect(text(show(shownTable(before, after), fenced))).toEqual({ mover: ALL });
  });
  it("retains no namespace that was fenced, because the pod never saw its objects", () => {
    const fenced = { ...before, fenced: new Set(["mover"]) };
    expect(show(fenced, after)).toEqual([]);
  });
  it("retains the buckets of cluster-scoped names that the subset loses, however the tables divide them", () => {
    const family = (members: Readonly<Record<string, readonly number[]>>) =>
      table([sharded(maps), subset("s1"), subset("s2")], members);
    const [atHome, byName] = [family({ "": [1] }), family({ "": [1], "#1": [1], "#2": [2], "#3": [1] })];
    const buckets = (from: RouteTable, to: RouteTable, as: string) => Object.keys(allOf(show(from, to, as))).filter(isBucket);
    expect(buckets(byName, family({ "": [1], "#1": [1], "#2": [2], "#3": [2] }), "s1")).toEqual(["#3"]);
    expect(buckets(atHome, byName, "s1")).toEqual(["#2"]);
    expect(buckets(byName, atHome, "s2")).toEqual(["#2"]);
    expect(buckets(atHome, family({ "": [2] }), "s1")).toEqual(BUCKETS);
    // Also after a further edit.
    expect(buckets(shownTable(byName, atHome, "s2"), family({ "": [1], a: [2] }), "s2")).toEqual(["#2"]);
    expect(buckets({ ...byName, fenced: new Set(["#1"]) }, family({ "": [2] }), "s1")).not.toContain("#1");
  });
  it("retains of a sharded family the named resources, also cluster-scoped ones, and nothing of a shared one", () => {
    const family = (home: number, mover: number) =>
      table([sharded(maps), subset("s1"), subset("s2")], { "": [home], own: [1], mover: [mover] });
    const named = [{ resources: [{ apiGroups: [""], resources: ["configmaps"] }], visible: true }];
    expect(text(show(family(1, 1), family(2, 2), "s1"))).toEqual({ "": named, mover: named });
    expect(text(show(shownTable(family(1, 1), family(2, 2), "s1"), family(2, 2), "s1"))).toEqual({ "": named, mover: named });
    expect(text(show(family(1, 1), { ...family(1, 1), fenced: new Set([""]) }, "s1"))).toEqual({ "": named });
    expect(show(family(1, 1), family(2, 2), "")).toEqual([]);
    expect(show(family(2, 2), family(1, 1), "s1")).toEqual([]);
    // An app that becomes a family: what the default subset owned.
    expect(text(show(table([], { own: [], mover: [] }), family(1, 2)))).toEqual({ "": named, own: named, mover: named });
  });
  it("retains no deleted namespace", () => {
    expect(show(before, table([subset("canary")], { prod: [], pilot: [0] }))).toEqual([]);
  });
  it("retains namespaces that a limit excludes", () => {
    expect(text(show(table([limit()], { prod: [0], mover: [0] }), table([limit()], { prod: [0], mover: [] })))).toEqual({
      mover: ALL,
    });
  });
  it("retains the resources that the subset owned in a namespace, except those that it still owns or never owned", () => {
    const some = table([subset("canary", maps)], { prod: [], mover: [] });
    const more = table([subset("canary", maps)], { prod: [], mover: [0] });
    expect(text(show(some, more))).toEqual({ mover: [{ resources: [maps], visible: true }] });
    // Resources of another subset stay hidden when all other resources move too.
    const all = table([subset("canary")], { prod: [], mover: [0] });
    expect(text(show(more, all))).toEqual({
      mover: [
        { resources: [maps], visible: false },
        { resources: [], visible: true },
      ],
    });
    // The retained resources and the lost resources are joined.
    const stepwise = shownTable(some, more);
    expect(text(show(stepwise, all))).toEqual({ mover: ALL });
  });
  it("retains namespaces that no rule contained before", () => {
    const open = table([], { prod: [] });
    expect(text(show(open, table([subset("canary")], { prod: [], fresh: [0] })))).toEqual({ fresh: ALL });
    const held = table([subset("canary")], { prod: [] });
    expect(show(held, table([subset("canary")], { prod: [], fresh: [0] }))).toEqual([]);
  });
  it("retains everything of the pod's old subset, also cluster-scoped objects, when labels move the pod to another subset", () => {
    expect(text(show(before, before, "", "canary"))).toEqual({ "": ALL, prod: ALL, mover: ALL });
    expect(text(show(before, before, "canary", ""))).toEqual({ pilot: ALL });
  });
  it("retains everything if the new subset owns nothing yet because a pod has not reported", () => {
    const fenced = { ...before, rules: [...before.rules, unreportedFence()] };
    expect(text(show(before, fenced, "canary"))).toEqual({ pilot: ALL });
    expect(show(fenced, after, "")).toEqual([]);
  });
  it("retains no resource that moves as a whole (partitioned by label or shared), which clients list again in place", () => {
    const divided = table([objects("canary", "t=x", maps), subset("canary", pods)], { mover: [1] });
    const apart = table([subset("canary")], { mover: [0] });
    expect(text(show(divided, apart))).toEqual({
      mover: [
        { resources: [group("", "configmaps", "pods")], visible: false },
        { resources: [], visible: true },
      ],
    });
    const open = table([], { mover: [] }, { sharedResources: [maps] });
    expect(text(show(open, apart))).toEqual({
      mover: [
        { resources: [maps], visible: false },
        { resources: [], visible: true },
      ],
    });
    const moving = { ...apart, rules: [...apart.rules, fence(maps)] };
    expect(text(show(table([], { mover: [] }), moving))).toEqual({
      mover: [
        { resources: [maps], visible: false },
        { resources: [], visible: true },
      ],
    });
  });
  it("groups namespaces into classes, few for any number of namespaces", () => {
    const names = Array.from({ length: 500 }, (_, index) => `n${index}`);
    const members = (list: readonly number[]) => Object.fromEntries(names.map((name) => [name, list]));
    const shown = show(table([subset("canary")], members([])), table([subset("canary")], members([0])));
    expect(shown.map(({ namespaces }) => namespaces.size)).toEqual([500]);
  });
});

const shown = (...resources: ResourceMatch[]): RetainedRule => ({ resources, visible: true });
const hidden = (...resources: ResourceMatch[]): RetainedRule => ({ resources, visible: false });
const apps = group("apps");
const canonical = (list: readonly RetainedRule[]) => canonicalRules([list], (g, r) => isVisibleBy(list, g, r));

describe("canonicalRules", () => {
  it("has one rule for all resources, none for no resources, and one exception for all but one", () => {
    expect(canonical([shown()])).toEqual([shown()]);
    expect(canonical([hidden(maps), hidden()])).toEqual([]);
    expect(canonical([hidden(maps), shown()])).toEqual([hidden(maps), shown()]);
    expect(canonical([shown(maps), shown(apps)])).toEqual([shown(maps), shown(apps)]);
  });
  it("omits what an earlier rule has decided", () => {
    expect(canonical([shown(maps), hidden(maps), shown(group("", "configmaps")), hidden()])).toEqual([shown(maps)]);
    expect(canonical([shown(), hidden(apps)])).toEqual([shown()]);
  });
  it("distinguishes a resource from the wildcards that cover it", () => {
    const list = [hidden(group("apps", "deployments")), shown(apps), shown(group("*", "pods")), hidden()];
    expect(canonical(list)).toEqual([hidden(group("apps", "deployments")), shown(apps, group("*", "pods"))]);
  });
});

const names = fc.constantFrom("", "apps", "batch", "*");
const kinds = fc.constantFrom("configmaps", "pods", "jobs", "*");
const matches = fc
  .tuple(fc.uniqueArray(names, { minLength: 1, maxLength: 2 }), fc.uniqueArray(kinds, { minLength: 1, maxLength: 2 }))
  .map(([apiGroups, resources]): ResourceMatch => ({ apiGroups, resources }));
const lists = fc.array(
  fc
    .tuple(fc.array(matches, { maxLength: 2 }), fc.boolean())
    .map(([resources, visible]): RetainedRule => ({ resources, visible })),
  { maxLength: 4 },
);

it("the canonical list decides like the given list for every resource, and equal lists have one form", () => {
  fc.assert(
    fc.property(lists, lists, (list, other) => {
      const once = canonical(list);
      for (const g of ["", "apps", "batch", "elsewhere"])
        for (const r of ["configmaps", "pods", "jobs", "others"]) expect(isVisibleBy(once, g, r)).toBe(isVisibleBy(list, g, r));
      expect(canonical(once)).toEqual(once);
      // Names without an effect do not appear in the result.
      expect(canonicalRules([list, other], (g, r) => isVisibleBy(list, g, r))).toEqual(once);
    }),
    { numRuns: 500 },
  );
});
