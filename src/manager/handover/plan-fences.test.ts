import { describe, expect, it } from "vitest";
import { group, limit, subset, table } from "../../../test/support/route-table.ts";
import type { RouteTable } from "../../route/table.ts";
import { type Claim, holdersOf } from "./claims.ts";
import { planFences } from "./plan-fences.ts";

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
