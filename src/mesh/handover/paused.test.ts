import { describe, expect, it } from "vitest";
import { fence, group, limit, objects, sharded, subset, table } from "../../../test/support/route-table.ts";
import { ownersOf } from "../ownership/owners.ts";
import type { RouteTable } from "../ownership/table.ts";
import { ownerText } from "../ownership/words.ts";
import { pauseAt } from "./paused.ts";

const SUBSETS = ["", "canary", "beta"];
const maps = group("", "configmaps");
const owners = (routes: RouteTable, resource = "pods") =>
  Object.fromEntries([...routes.classOf.keys()].map((name) => [name, ownerText(ownersOf(routes, "", resource).ownerOf(name))]));
const inForce = table([subset("canary")], { prod: [], pilot: [0], mover: [] });
const canary = 'subset "canary"';
const rest = "the default subset";

describe("pauseAt", () => {
  it("keeps every namespace with its present owner, and counts the namespaces for which the spec demands another owner", () => {
    const { desired, kept } = pauseAt(table([subset("canary")], { prod: [0], pilot: [], mover: [0] }), inForce, SUBSETS);
    expect(owners(desired)).toEqual({ prod: rest, pilot: canary, mover: rest });
    expect(kept).toBe(3);
  });
  it("applies the spec to new namespaces, and omits deleted namespaces", () => {
    const { desired, kept } = pauseAt(table([subset("canary"), subset("beta")], { prod: [0], fresh: [1] }), inForce, SUBSETS);
    expect(owners(desired)).toEqual({ prod: rest, fresh: 'subset "beta"' });
    expect(kept).toBe(1);
  });
  it("keeps buckets with their owners, or as the cluster scope, and one of a subset that is gone goes where the spec says", () => {
    const family = (members: Readonly<Record<string, readonly number[]>>) =>
      table([sharded(maps), subset("canary"), subset("beta"), subset("gone")], members);
    const byName = family({ "": [1], "#1": [1], "#2": [2], "#3": [3], a: [1] });
    const kept = owners(pauseAt(family({ "": [2], a: [1] }), byName, SUBSETS).desired, "configmaps");
    expect(kept).toEqual({ a: canary, "": canary, "#1": canary, "#2": 'subset "beta"', "#3": 'subset "beta"' });
    expect(pauseAt(byName, family({ "": [2], a: [1] }), SUBSETS).desired.classOf.has("#1")).toBe(false);
  });
  it("uses the spec if no pod has a table", () => {
    expect(pauseAt(inForce, undefined, SUBSETS)).toEqual({ desired: inForce, kept: 0 });
  });
  it("changes nothing when applied to its own result, and does not grow with a new namespace", () => {
    const spec = (more: Record<string, number[]>) => table([subset("beta"), limit(maps)], { prod: [0], fresh: [0], ...more });
    const once = pauseAt(spec({}), inForce, SUBSETS).desired;
    expect(pauseAt(spec({}), once, SUBSETS).desired).toEqual(once);
    const twice = pauseAt(spec({ newer: [0, 1] }), once, SUBSETS).desired;
    expect(twice.rules).toEqual(once.rules);
    expect(owners(twice, "configmaps")).toEqual({
      prod: rest,
      fresh: "nobody in this app (outside of spec.route.globalLimits[0])",
      newer: 'subset "beta"',
    });
  });
  it("applies the limits of each set of rules to its own namespaces only", () => {
    const limited = table([limit(), subset("canary")], { prod: [0], pilot: [0, 1], out: [] });
    const { desired } = pauseAt(
      table([subset("canary"), limit(maps)], { prod: [], pilot: [], out: [], fresh: [0] }),
      limited,
      SUBSETS,
    );
    const outside = "nobody in this app (outside of spec.route.globalLimits[0])";
    expect(owners(desired)).toEqual({ prod: rest, pilot: canary, out: outside, fresh: canary });
    expect(owners(desired, "configmaps")).toEqual({ prod: rest, pilot: canary, out: outside, fresh: outside });
  });
  it("omits fences and retained namespaces from the desired table", () => {
    const fenced = { ...inForce, rules: [...inForce.rules, fence(maps)], fenced: new Set(["pilot"]), retained: [] };
    expect(pauseAt(inForce, fenced, SUBSETS).desired).toEqual(inForce);
  });
  it("keeps the rules in force for resources that move as a whole", () => {
    const gold = objects("canary", "tier=gold", maps);
    const divided = table([gold], { prod: [] }, { sharedResources: [group("", "secrets")] });
    const { desired } = pauseAt(table([objects("beta", "x", maps)], { prod: [], fresh: [] }), divided, SUBSETS);
    expect(desired.rules).toEqual([gold]);
    expect(desired.sharedResources).toEqual(divided.sharedResources);
  });
  it("keeps a sharded family one, with the sharded rule in force as the first and the cluster scope at home", () => {
    const family = (named: string, home: number, more: Record<string, number[]>) =>
      table([sharded(group("", named)), subset("canary"), subset("beta")], { "": [home], prod: [1], ...more });
    const old = family("configmaps", 1, {});
    const { desired, kept } = pauseAt(family("secrets", 2, { prod: [2], fresh: [2] }), old, SUBSETS);
    expect(desired.rules).toEqual(old.rules);
    expect(owners(desired, "configmaps")).toEqual({ prod: canary, fresh: 'subset "beta"', "": canary });
    expect(kept).toBe(1);
    const added = table([sharded(maps), subset("canary"), subset("gamma")], { "": [1], prod: [], fresh: [2] });
    expect(pauseAt(added, old, [...SUBSETS, "gamma"]).desired.rules.map(({ kind }) => kind)).toEqual([
      "sharded",
      ...Array(4).fill("subset"),
    ]);
  });
  it("keeps an app without shards, or a family, as it is when the spec wants the other", () => {
    const family = table([sharded(maps), subset("beta")], { "": [1], prod: [1], pilot: [1] });
    expect(owners(pauseAt(family, inForce, SUBSETS).desired, "configmaps")).toEqual({ prod: rest, pilot: canary });
    const back = pauseAt(table([], { prod: [], pilot: [] }), family, SUBSETS).desired;
    const alike = table([subset("canary", maps)], { pilot: [0] });
    expect(pauseAt(table([sharded(maps), subset("canary", maps)], { "": [], pilot: [1] }), alike, SUBSETS).kept).toBe(1);
    expect(owners(back, "configmaps")).toEqual({ "": 'subset "beta"', prod: 'subset "beta"', pilot: 'subset "beta"' });
  });
  it("applies the spec to the namespaces of a removed subset", () => {
    expect(owners(pauseAt(table([], { prod: [], pilot: [] }), inForce, [""]).desired)).toEqual({ prod: rest, pilot: rest });
  });
});
