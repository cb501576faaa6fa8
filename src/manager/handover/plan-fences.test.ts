import { describe, expect, it } from "vitest";
import { group, limit, objects, subset, table } from "../../../test/support/route-table.ts";
import type { RouteTable } from "../../route/table.ts";
import { type Claim, holdersOf } from "./claims.ts";
import { planFences, withFences } from "./plan-fences.ts";

const before = table([subset("canary")], { prod: [], pilot: [0], mover: [] });
const after = table([subset("canary")], { prod: [], pilot: [0], mover: [0] });
const claim = (pod: string, of: string, routes: RouteTable): Claim => ({
  kind: "table",
  pod,
  subset: of,
  table: routes,
  enforced: true,
});
const fences = (wished: RouteTable, ...claims: Claim[]) => {
  const { fenced, waits } = planFences(wished, ["", "canary"], claims);
  return { default: [...(fenced.get("") ?? [])], canary: [...(fenced.get("canary") ?? [])], waits };
};

describe("planFences", () => {
  it("grants everything when every pod enforces the wished table", () => {
    expect(fences(after, claim("a", "", after), claim("c", "canary", after))).toEqual({ default: [], canary: [], waits: [] });
  });
  it("keeps a namespace from its new owner while a pod of the old one holds it, and says which", () => {
    const plan = fences(after, claim("a", "", before), claim("b", "", after), claim("c", "canary", before));
    expect(plan).toEqual({ default: [], canary: ["mover"], waits: [{ namespace: "mover", pod: "a", cause: "holds" }] });
  });
  it("grants it once the old owner's last pod has acknowledged or is gone", () => {
    expect(fences(after, claim("b", "", after), claim("c", "canary", before)).canary).toEqual([]);
  });
  it("moves back the same way", () => {
    expect(fences(before, claim("a", "", after), claim("c", "canary", after)).default).toEqual(["mover"]);
  });
  it("counts a fence as holding nothing", () => {
    const fenced = { ...before, fenced: new Set(["mover"]) };
    expect(fences(after, claim("a", "", fenced)).canary).toEqual([]);
  });
  it("waits for a pod that may hold everything, since it runs without a proxy or has not reported", () => {
    const plan = fences(after, { kind: "everything", pod: "bare", subset: "" });
    expect(plan.canary).toEqual(["pilot", "mover"]);
    expect(plan.default).toEqual([]);
  });
  it("takes nothing away from a subset that holds it already, because another pod has not reported yet", () => {
    const unreported: Claim = { kind: "everything", pod: "late", subset: "" };
    expect(fences(after, unreported, claim("c", "canary", after)).canary).toEqual([]);
  });
  it("lets a namespace that is new to everybody go to its owner at once", () => {
    const grown = table([subset("canary")], { prod: [], pilot: [0], mover: [], fresh: [0] });
    expect(fences(grown, claim("a", "", before), claim("c", "canary", before)).canary).toEqual([]);
  });
  it("fences what the default subset held by a table without rules", () => {
    const open = table([], { prod: [], pilot: [], mover: [] });
    expect(fences(after, claim("a", "", open)).canary).toEqual(["pilot", "mover"]);
  });
});

describe("resources that labels divide", () => {
  const maps = group("", "configmaps");
  const pods = group("", "pods");
  const gold = objects("canary", "tier=gold", maps);
  const members = { prod: [], pilot: [] };
  const plain = table([], members);
  const divided = table([gold], members);
  const resourceFences = (wished: RouteTable, ...claims: Claim[]) => {
    const plan = planFences(wished, ["", "canary"], claims);
    const waits = plan.waits.filter(({ namespace }) => namespace === "").map(({ pod }) => pod);
    return { default: plan.fencedResources.get("") ?? [], canary: plan.fencedResources.get("canary") ?? [], waits };
  };

  it("are kept from everybody else while a pod still goes by other rules", () => {
    expect(resourceFences(divided, claim("a", "", plain))).toEqual({ default: [], canary: [maps], waits: ["a"] });
    expect(resourceFences(divided, claim("c", "canary", plain))).toEqual({ default: [maps], canary: [], waits: ["c"] });
  });
  it("are granted once every pod has acknowledged the new rules, with their fences", () => {
    const fenced = withFences(divided, planFences(divided, ["", "canary"], [claim("a", "", plain)]), "canary");
    expect(fenced.rules.at(-1)).toMatchObject({ kind: "fence", resources: [maps] });
    expect(resourceFences(divided, claim("a", "", divided), claim("c", "canary", fenced))).toEqual({
      default: [],
      canary: [],
      waits: [],
    });
  });
  it("move when a selector changes, when the order does, and when the rule goes, and only they", () => {
    const silver = table([objects("canary", "tier=silver", maps), objects("canary", "a", pods)], members);
    const both = table([gold, objects("canary", "a", pods)], members);
    expect(resourceFences(silver, claim("a", "", both)).canary).toEqual([maps]);
    expect(resourceFences(plain, claim("c", "canary", divided)).default).toEqual([maps]);
    const [one, two] = [objects("beta", "x", maps), objects("canary", "y", maps)];
    expect(resourceFences(table([two, one], members), claim("b", "beta", table([one, two], members))).canary).toEqual([maps]);
  });
  it("are kept from everybody beside a pod that may hold everything, but not taken from who has them already", () => {
    const bare: Claim = { kind: "everything", pod: "bare", subset: "" };
    expect(resourceFences(divided, bare).canary).toEqual([{ apiGroups: ["*"], resources: ["*"] }]);
    expect(resourceFences(divided, bare, claim("c", "canary", divided)).canary).toEqual([]);
  });
  it("do not stop a namespace", () => {
    const { fenced } = planFences(divided, ["", "canary"], [claim("a", "", plain)]);
    expect([...fenced.values()].every((set) => set.size === 0)).toBe(true);
  });
});

describe("holdersOf", () => {
  it("ends at the first rule that takes all resources", () => {
    const routes = table([subset("db", group("", "configmaps")), subset("canary"), subset("late")], { x: [0, 1, 2], y: [0] });
    expect([...holdersOf(routes, "x")]).toEqual(["db", "canary"]);
    expect([...holdersOf(routes, "y")]).toEqual(["db", ""]);
  });
  it("is nobody outside of a limit on all resources", () => {
    expect([...holdersOf(table([limit()], { out: [] }), "out")]).toEqual([]);
  });
  it("is the default subset in unknown namespaces if some resource has no rule at all", () => {
    expect([...holdersOf(table([subset("db", group("", "configmaps"))], {}), "new")]).toEqual([""]);
    expect([...holdersOf(table([subset("canary")], {}), "new")]).toEqual([]);
  });
});
