import { describe, expect, it } from "vitest";
import { fence, group, limit, objects, subset, table } from "../../../test/support/route-table.ts";
import { ownersOf, ownerText, type RouteTable } from "../../route/table.ts";
import { pauseAt } from "./paused.ts";

const SUBSETS = ["", "canary", "beta"];
const maps = group("", "configmaps");
const owners = (routes: RouteTable, resource = "pods") =>
  Object.fromEntries([...routes.classOf.keys()].map((name) => [name, ownerText(ownersOf(routes, "", resource).ownerOf(name))]));
const inForce = table([subset("canary")], { prod: [], pilot: [0], mover: [] });
const canary = 'subset "canary"';
const rest = "the default subset";

describe("pauseAt", () => {
  it("keeps every namespace with the owner that it has, and counts those to which the spec gives another one", () => {
    const { desired, kept } = pauseAt(table([subset("canary")], { prod: [0], pilot: [], mover: [0] }), inForce, SUBSETS);
    expect(owners(desired)).toEqual({ prod: rest, pilot: canary, mover: rest });
    expect(kept).toBe(3);
  });
  it("lets new namespaces go by the spec, and forgets those that are gone", () => {
    const { desired, kept } = pauseAt(table([subset("canary"), subset("beta")], { prod: [0], fresh: [1] }), inForce, SUBSETS);
    expect(owners(desired)).toEqual({ prod: rest, fresh: 'subset "beta"' });
    expect(kept).toBe(1);
  });
  it("uses the spec where no pod has a table", () => {
    expect(pauseAt(inForce, undefined, SUBSETS)).toEqual({ desired: inForce, kept: 0 });
  });
  it("is at rest: its own result changes nothing, nor does the next new namespace under the same spec make it grow", () => {
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
  it("takes the limits of each set for its own namespaces alone", () => {
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
  it("keeps fences and what is shown out of the wish", () => {
    const fenced = { ...inForce, rules: [...inForce.rules, fence(maps)], fenced: new Set(["pilot"]), retained: [] };
    expect(pauseAt(inForce, fenced, SUBSETS).desired).toEqual(inForce);
  });
  it("leaves what moves as a whole by the rules in force", () => {
    const gold = objects("canary", "tier=gold", maps);
    const divided = table([gold], { prod: [] }, { sharedResources: [group("", "secrets")] });
    const { desired } = pauseAt(table([objects("beta", "x", maps)], { prod: [], fresh: [] }), divided, SUBSETS);
    expect(desired.rules).toEqual([gold]);
    expect(desired.sharedResources).toEqual(divided.sharedResources);
  });
  it("gives the namespaces of a subset that is no more to whom the spec gives them", () => {
    expect(owners(pauseAt(table([], { prod: [], pilot: [] }), inForce, [""]).desired)).toEqual({ prod: rest, pilot: rest });
  });
});
