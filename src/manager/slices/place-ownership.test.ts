import { expect, it } from "vitest";
import { modelApp } from "../../../test/support/model-app.ts";
import { group, limit, sharded, subset, table } from "../../../test/support/route-table.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";
import type { OwnershipPlan } from "../apps/published-plans.ts";
import { ownershipByPlace } from "./place-ownership.ts";

const settled = (desired: RouteTable): OwnershipPlan => ({ desired, subsets: [], rules: new Map(), digest: "", waits: [] });
const ownersOf = (desired: RouteTable, place: string) => ownershipByPlace(settled(desired)).get(place);

it("each namespace and the cluster scope have an owner, and equal ones share one object", () => {
  const app = modelApp(["prod", "dev", "pilot"], { canary: ["pilot"] });
  app.pod("d", "").pod("c", "canary").settle();
  const ownership = ownershipByPlace(app.plan());
  expect(Object.fromEntries(ownership)).toEqual({
    "": { state: "Owned", owners: [{ subset: "default" }] },
    prod: { state: "Owned", owners: [{ subset: "default" }] },
    dev: { state: "Owned", owners: [{ subset: "default" }] },
    pilot: { state: "Owned", owners: [{ subset: "canary" }] },
  });
  expect(ownership.get("prod")).toBe(ownership.get("dev"));
});

it("a namespace is Moving while a pod of another subset may write there, and then belongs to the next owner", () => {
  const app = modelApp(["prod", "mover"], {});
  app.pod("d", "").pod("c", "canary").settle();
  app.wish({ canary: ["mover"] });
  const moving = ownershipByPlace(app.plan());
  expect(moving.get("mover")).toEqual({ state: "Moving", owners: [{ subset: "canary" }], from: ["default"] });
  expect(moving.get("prod")?.state).toBe("Owned");
  app.settle();
  expect(ownershipByPlace(app.plan()).get("mover")).toEqual({ state: "Owned", owners: [{ subset: "canary" }] });
});

it("a frozen namespace has its owner, and moves as any other", () => {
  const app = modelApp(["prod", "dev"], {});
  app.pod("d", "").settle();
  const plan = app.plan();
  const frozen = [{ namespace: "prod", reason: "restore" }];
  const states = (of: OwnershipPlan) =>
    ownershipByPlace({ ...of, rules: new Map([...of.rules].map(([name, rules]) => [name, { ...rules, frozen }])) });
  expect(states(plan).get("prod")).toEqual({ state: "Frozen", owners: [{ subset: "default" }] });
  expect(states(plan).get("dev")?.state).toBe("Owned");
  app.wish({ canary: ["prod"] });
  app.pod("c", "canary");
  expect(states(app.plan()).get("prod")).toMatchObject({
    owners: [{ subset: "canary" }],
    state: expect.stringMatching(/Moving|Fenced/),
  });
});

it("a place is Fenced while a new leader does not know what pods may write, and keeps its owner", () => {
  const app = modelApp(["prod", "pilot"], { canary: ["pilot"] });
  app.pod("d", "").pod("c", "canary").settle();
  app.failOver();
  const unheard = ownershipByPlace(app.plan());
  expect(unheard.get("pilot")).toEqual({ state: "Fenced", owners: [{ subset: "canary" }] });
  expect(unheard.get("")).toEqual({ state: "Fenced", owners: [{ subset: "default" }] });
  app.report("c");
  expect(ownershipByPlace(app.plan()).get("pilot")?.state).toBe("Owned");
});

it("a pod without a proxy may write everywhere, so what other subsets own is Moving from the default subset", () => {
  const app = modelApp(["prod", "pilot"], { canary: ["pilot"] });
  app.bare("b").pod("c", "canary").settle();
  const ownership = ownershipByPlace(app.plan());
  expect(ownership.get("pilot")).toMatchObject({ state: "Moving", from: ["default"] });
  expect(ownership.get("prod")?.state).toBe("Owned");
});

it("rules that name resources are owners in their order, with `default` for all others", () => {
  const desired = table([subset("a", group("apps", "deployments"), group("", "pods")), subset("b")], {
    one: [0],
    both: [0, 1],
    none: [],
  });
  const a = { subset: "a", resources: ["deployments.apps", "pods"] };
  expect(ownersOf(desired, "one")?.owners).toEqual([a, { subset: "default" }]);
  expect(ownersOf(desired, "both")?.owners).toEqual([a, { subset: "b" }]);
  expect(ownersOf(desired, "none")?.owners).toEqual([{ subset: "default" }]);
});

it("nobody owns what is outside of a limit, and the resources of a limit for some", () => {
  const desired = table([limit(), limit(group("", "secrets"))], { in: [0, 1], out: [1], half: [0] });
  expect(ownersOf(desired, "out")).toEqual({ state: "Unowned" });
  expect(ownersOf(desired, "half")?.owners).toEqual([{ resources: ["secrets"] }, { subset: "default" }]);
  expect(ownersOf(desired, "in")?.owners).toEqual([{ subset: "default" }]);
});

it("shards own what they name, buckets too, and a gap belongs to nobody", () => {
  const named = group("", "configmaps");
  const rules = [sharded(named), subset("s-1", named), subset("s-2", named)];
  const desired = table(rules, { "": [1], "#0": [1], "#1": [2], team: [2], gap: [] });
  expect(ownersOf(desired, "#1")).toEqual({ state: "Owned", owners: [{ subset: "s-2", resources: ["configmaps"] }] });
  expect(ownersOf(desired, "")?.owners).toEqual([{ subset: "s-1", resources: ["configmaps"] }]);
  expect(ownersOf(desired, "gap")).toEqual({ state: "Unowned" });
});

it("a rule with thousands of resources has the first of them and their number", () => {
  const many = Array.from({ length: 2_000 }, (_, at) => `r${at}s`);
  const [owner] = ownersOf(table([subset("a", group("", ...many))], { one: [0] }), "one")?.owners ?? [];
  expect([owner?.resources?.length, owner?.moreResources]).toEqual([16, 1_984]);
});
