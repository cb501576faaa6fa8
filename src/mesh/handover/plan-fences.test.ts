import { describe, expect, it } from "vitest";
import { fence, group, limit, objects, sharded, subset, table, unreportedFence } from "../../../test/support/route-table.ts";
import { ownersOf } from "../ownership/owners.ts";
import type { ResourceMatch, RouteTable } from "../ownership/table.ts";
import type { Claim } from "./claims.ts";
import { createHolders } from "./class-facts.ts";
import { planFences, withFences } from "./plan-fences.ts";

const before = table([subset("canary")], { prod: [], pilot: [0], mover: [] });
const after = table([subset("canary")], { prod: [], pilot: [0], mover: [0] });
const claim = (podName: string, of: string, routes: RouteTable): Claim => ({
  kind: "table",
  podName,
  subset: of,
  table: routes,
  enforced: true,
});
const fences = (desired: RouteTable, ...claims: Claim[]) => {
  const { fenced, waits } = planFences(desired, ["", "canary"], claims);
  return { default: [...(fenced.get("") ?? [])], canary: [...(fenced.get("canary") ?? [])], waits };
};

describe("planFences", () => {
  it("grants everything when every pod enforces the desired table", () => {
    expect(fences(after, claim("a", "", after), claim("c", "canary", after))).toEqual({ default: [], canary: [], waits: [] });
  });
  it("fences a namespace for its new owner while a pod of the old owner has a claim, and names the pod", () => {
    const plan = fences(after, claim("a", "", before), claim("b", "", after), claim("c", "canary", before));
    expect(plan).toEqual({
      default: [],
      canary: ["mover"],
      waits: [{ podName: "a", subset: "", cause: "holds", namespaces: ["mover"], to: ["canary"] }],
    });
  });
  it("grants the namespace once the old owner's last pod has acknowledged or is gone", () => {
    expect(fences(after, claim("b", "", after), claim("c", "canary", before)).canary).toEqual([]);
  });
  it("fences a bucket of cluster-scoped names between tables that divide them and tables that do not, and no wait names it", () => {
    const family = (members: Readonly<Record<string, readonly number[]>>) =>
      table([sharded(group("", "configmaps")), subset("s1"), subset("s2")], members);
    const [atHome, byName] = [family({ "": [1] }), family({ "": [1], "#1": [1], "#2": [2] })];
    const plan = (desired: RouteTable, ...claims: Claim[]) => {
      const { fenced, waits } = planFences(desired, ["s1", "s2"], claims);
      return [[...(fenced.get("s1") ?? [])], [...(fenced.get("s2") ?? [])], waits.map(({ namespaces }) => namespaces)];
    };
    expect(plan(byName, claim("a", "s1", atHome), claim("b", "s2", atHome))).toEqual([[], ["#2"], [[]]]);
    expect(plan(atHome, claim("a", "s1", byName), claim("b", "s2", byName))).toEqual([["#2"], [], [[]]]);
    const fenced = { ...atHome, fenced: new Set([""]) };
    expect(plan(byName, claim("a", "s1", fenced), claim("b", "s2", atHome))).toEqual([[], [], []]);
  });
  it("keeps from a subset what a pod that has not reported may own outside of the desired table", () => {
    const unreported: Claim = { kind: "everything", podName: "u", subset: undefined };
    const family = (members: Readonly<Record<string, readonly number[]>>) =>
      table([sharded(group("", "configmaps")), subset("s1"), subset("s2")], members);
    const [atHome, byName] = [family({ "": [1] }), family({ "": [1], "#1": [1], "#2": [2] })];
    const { fenced } = planFences(atHome, ["s1", "s2"], [claim("a", "s1", byName), unreported]);
    expect([...(fenced.get("s1") ?? [])]).toEqual(["#2"]);
    // The namespace y is deleted: the desired table does not name it, and the rules give it to the default subset.
    const pods = group("", "pods");
    const [old, next] = [table([subset("canary")], { x: [], y: [0] }), table([subset("canary", pods)], { x: [] })];
    expect(fences(next, claim("a", "", old), unreported).default).toContain("y");
    const stillFenced = { ...next, fenced: new Set(["y"]) };
    expect(fences(next, claim("a", "", stillFenced), unreported).default).toContain("y");
    // What a pod of the subset has already stays.
    expect(fences(next, claim("a", "", next), unreported).default).toEqual([]);
  });
  it("counts the claims of a removed pod like those of a live pod, and distinguishes the two waits", () => {
    const gone: Claim = { ...claim("g", "", before), isGone: true };
    const plan = fences(after, claim("a", "", before), gone, claim("c", "canary", before));
    expect(plan.canary).toEqual(["mover"]);
    expect(plan.waits.map(({ podName, cause }) => [podName, cause])).toEqual([
      ["a", "holds"],
      ["g", "pod-gone"],
    ]);
  });
  it("grants nothing new while recent removals are not known, and takes nothing away", () => {
    const unknown: Claim = { kind: "everything", podName: "", subset: undefined, isGone: true };
    const plan = fences(after, unknown, claim("a", "", after), claim("c", "canary", before));
    expect([plan.default, plan.canary]).toEqual([[], ["mover"]]);
    expect(plan.waits).toEqual([{ podName: "", subset: undefined, cause: "just-listed", namespaces: ["mover"], to: ["canary"] }]);
    expect(fences(after, unknown, claim("a", "", after), claim("c", "canary", after)).waits).toEqual([]);
  });
  it("moves a namespace back in the same way", () => {
    expect(fences(before, claim("a", "", after), claim("c", "canary", after)).default).toEqual(["mover"]);
  });
  it("equal fences on the same desired table are one table object, and changed fences another", () => {
    const fencedFor = (...claims: Claim[]) => withFences(after, planFences(after, ["", "canary"], claims), "canary");
    const moving = () => fencedFor(claim("a", "", before), claim("c", "canary", before));
    const one = moving();
    expect(one.fenced).toEqual(new Set(["mover"]));
    expect(moving()).toBe(one);
    expect(fencedFor({ kind: "everything", podName: "a", subset: undefined })).not.toEqual(one);
    expect(fencedFor(claim("a", "", after))).toBe(after);
  });
  it("does not count a fenced namespace as a claim", () => {
    const fenced = { ...before, fenced: new Set(["mover"]) };
    expect(fences(after, claim("a", "", fenced)).canary).toEqual([]);
  });
  it("waits for a pod that may claim everything, because it has no proxy or has not reported", () => {
    const plan = fences(after, { kind: "everything", podName: "bare", subset: "" });
    expect(plan.canary).toEqual(["pilot", "mover"]);
    expect(plan.default).toEqual([]);
  });
  it("takes nothing from a subset that already owns it, although another pod has not reported yet", () => {
    const unreported: Claim = { kind: "everything", podName: "late", subset: "" };
    expect(fences(after, unreported, claim("c", "canary", after)).canary).toEqual([]);
  });
  it("grants a new namespace, which no pod knows, at once", () => {
    const grown = table([subset("canary")], { prod: [], pilot: [0], mover: [], fresh: [0] });
    expect(fences(grown, claim("a", "", before), claim("c", "canary", before)).canary).toEqual([]);
  });
  it("fences namespaces that the default subset owned under a table without rules", () => {
    const open = table([], { prod: [], pilot: [], mover: [] });
    expect(fences(after, claim("a", "", open)).canary).toEqual(["mover", "pilot"]);
  });
});

describe("the cost", () => {
  /** A table of 300 namespaces that counts the lookups. */
  const counted = (of: number) => {
    let asked = 0;
    const members = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`n${index}`, index < of ? [0] : []]));
    const plain = table([subset("canary")], members);
    class Counting extends Map<string, number> {
      override get(name: string) {
        asked++;
        return super.get(name);
      }
    }
    return { routes: { ...plain, classOf: new Counting(plain.classOf) }, asked: () => asked };
  };
  const plan = (pods: number) => {
    const [desired, old] = [counted(200), counted(100)];
    const claims = Array.from({ length: pods }, (_, at) => claim(`p${at}`, at % 2 === 0 ? "" : "canary", old.routes));
    const made = planFences(desired.routes, ["", "canary"], claims);
    return { ...made, asked: desired.asked() + old.asked() };
  };
  it("does not grow with the pods that enforce the same table", () => {
    const [few, many] = [plan(2), plan(2_000)];
    expect(few.asked).toBeGreaterThan(0);
    expect(many.asked).toBe(few.asked);
    expect(many.fenced).toEqual(few.fenced);
    expect(many.waits).toHaveLength(1_000);
    expect(new Set(many.waits.map(({ namespaces }) => namespaces)).size).toBe(1);
  });
});

/** The resources that are fenced as a whole, or the reason of a fence of everything. */
const resourceFences = (desired: RouteTable, ...claims: Claim[]) => {
  const plan = planFences(desired, ["", "canary"], claims);
  const waits = plan.waits.filter(({ namespaces }) => namespaces.length === 0).map(({ podName }) => podName);
  const of = (name: string) =>
    (plan.resourceFences.get(name) ?? []).flatMap(({ because, resources }): readonly (ResourceMatch | string)[] =>
      because === "moves" ? resources : [because],
    );
  return { default: of(""), canary: of("canary"), waits };
};

describe("resources that are partitioned by label", () => {
  const maps = group("", "configmaps");
  const pods = group("", "pods");
  const gold = objects("canary", "tier=gold", maps);
  const members = { prod: [], pilot: [] };
  const plain = table([], members);
  const divided = table([gold], members);
  it("are fenced for all other subsets while a pod still enforces other rules", () => {
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
  it("move, and only they, when a selector changes, when the order changes, and when the rule is removed", () => {
    const silver = table([objects("canary", "tier=silver", maps), objects("canary", "a", pods)], members);
    const both = table([gold, objects("canary", "a", pods)], members);
    expect(resourceFences(silver, claim("a", "", both)).canary).toEqual([maps]);
    expect(resourceFences(plain, claim("c", "canary", divided)).default).toEqual([maps]);
    const [one, two] = [objects("beta", "x", maps), objects("canary", "y", maps)];
    expect(resourceFences(table([two, one], members), claim("b", "beta", table([one, two], members))).canary).toEqual([maps]);
  });
  it("are fenced beside a pod that may claim everything, but not for subsets that already own them", () => {
    const bare: Claim = { kind: "everything", podName: "bare", subset: "" };
    expect(resourceFences(divided, bare).canary).toEqual(["unreported"]);
    expect(resourceFences(divided, bare, claim("c", "canary", divided)).canary).toEqual([]);
  });
  it("are all that is fenced beside a pod that may claim everything, if the subset enforces a table", () => {
    const silver = table([objects("canary", "tier=silver", maps), subset("canary", pods)], { prod: [], pilot: [1] });
    const old = table([gold, subset("canary", pods)], { prod: [], pilot: [1] });
    const late: Claim = { kind: "everything", podName: "late", subset: undefined };
    const own = [claim("c", "canary", old), claim("a", "", old)];
    expect(resourceFences(silver, late, ...own)).toEqual({ default: [maps], canary: [maps], waits: ["late", "c", "a"] });
    // The manager restarts during a fence: the pod of the claim has not reported, and nothing else is fenced.
    const fenced = { ...silver, rules: [...silver.rules, fence(maps)] };
    expect(resourceFences(silver, late, claim("a", "", fenced)).default).toEqual([maps]);
    // The same after the rule was removed, when only the fence shows it.
    const plain = table([subset("canary", pods)], { prod: [], pilot: [0] });
    const kept = { ...plain, rules: [...plain.rules, fence(maps)] };
    expect(resourceFences(plain, late, claim("a", "", kept)).default).toEqual([maps]);
    // The first rule on labels comes while a pod has not reported.
    const open = table([subset("canary", pods)], { prod: [], pilot: [0] });
    expect(resourceFences(silver, late, claim("a", "", open)).default).toEqual([maps]);
    expect(planFences(silver, ["", "canary"], [late, claim("a", "", open)]).fenced.get("")).toEqual(new Set());
  });
  it("are fenced for a subset that owns nothing yet, until the claims of the others are known", () => {
    const late: Claim = { kind: "everything", podName: "late", subset: undefined };
    const nothing = { ...divided, rules: [...divided.rules, unreportedFence()] };
    expect(resourceFences(divided, late, claim("c", "canary", nothing)).canary).toEqual(["unreported"]);
    // A subset that already owns everything does not wait for that.
    expect(resourceFences(divided, late, claim("c", "canary", nothing), claim("a", "", divided)).default).toEqual([]);
    expect(resourceFences(divided, claim("c", "canary", nothing), claim("a", "", divided)).canary).toEqual([]);
  });
  it("are not fenced again for a subset that was just sent them, when an unknown pod appears", () => {
    const late: Claim = { kind: "everything", podName: "late", subset: undefined };
    const sent: Claim = { kind: "table", podName: "c", subset: "canary", table: divided, enforced: false };
    expect(resourceFences(divided, late, sent).canary).toEqual([]);
  });
  it("have a fence with the reason moves, not unreported, if a wildcard names them", () => {
    const ALL = group("*");
    const [before, after] = ["gold", "silver"].map((tier) => table([objects("canary", `tier=${tier}`, ALL)], members));
    if (before === undefined || after === undefined) throw new Error("no tables");
    const plan = planFences(after, ["", "canary"], [claim("c", "canary", before), claim("a", "", before)]);
    for (const name of ["", "canary"]) expect(ownersOf(withFences(after, plan, name), "", "configmaps").isMoving).toBe(true);
  });
  it("move one by one: a changed rule with several resources fences only those that change", () => {
    const secrets = group("", "secrets");
    const two = table([objects("canary", "tier=gold", group("", "configmaps", "secrets"))], members);
    const apart = table([objects("canary", "tier=gold", maps, secrets)], members);
    expect(resourceFences(apart, claim("c", "canary", two)).default).toEqual([]);
    expect(resourceFences(divided, claim("c", "canary", two)).default).toEqual([secrets]);
  });
  it("do not fence a namespace", () => {
    const { fenced } = planFences(divided, ["", "canary"], [claim("a", "", plain)]);
    expect([...fenced.values()].every((set) => set.size === 0)).toBe(true);
  });
});

describe("shared resources", () => {
  const maps = group("", "configmaps");
  const members = { prod: [], pilot: [0] };
  const open = table([subset("canary")], members, { sharedResources: [maps] });
  const closed = table([subset("canary")], members);

  it("are fenced for their new owner while another subset still shares them, and for sharing subsets while they have an owner", () => {
    const own = (of: RouteTable) => [claim("c", "canary", of), claim("a", "", of)];
    expect(resourceFences(closed, ...own(open))).toEqual({ default: [maps], canary: [maps], waits: ["c", "a"] });
    expect(resourceFences(open, ...own(closed))).toEqual({ default: [maps], canary: [maps], waits: ["c", "a"] });
    expect(resourceFences(open, ...own(open))).toEqual({ default: [], canary: [], waits: [] });
    expect(planFences(closed, ["", "canary"], own(open)).fenced).toEqual(
      new Map(["", "canary"].map((name) => [name, new Set()])),
    );
  });
  it("are fenced while they move", () => {
    const fenced = withFences(open, planFences(open, ["", "canary"], [claim("a", "", closed)]), "canary");
    for (const namespace of ["", "prod", "pilot"])
      expect(ownersOf(fenced, "", "configmaps").ownerOf(namespace)).toEqual({ kind: "moving" });
  });
  it("are not covered by a fence with the reason unreported, so the plan waits for the pod that shares them", () => {
    const holder = table([unreportedFence()], { prod: [] }, { sharedResources: [maps] });
    expect(ownersOf(holder, "", "configmaps").ownerOf("prod")).toEqual({ kind: "everyone" });
    const divided = table([objects("canary", "tier=gold", maps)], { prod: [] });
    expect(resourceFences(divided, claim("a", "", holder)).canary).toEqual([maps]);
    const stopped = table([fence(maps)], { prod: [] }, { sharedResources: [maps] });
    expect(resourceFences(divided, claim("a", "", stopped)).canary).toEqual([]);
  });
  it("move when a rule on namespaces that names them is added, changed or removed, but not when a namespace is created", () => {
    const taken = (...to: string[]) =>
      table([subset("canary", maps)], Object.fromEntries(["prod", ...to].map((name) => [name, name === "prod" ? [] : [0]])), {
        sharedResources: [maps],
      });
    expect(
      resourceFences(taken("pilot"), claim("a", "", table([], { prod: [], pilot: [] }, { sharedResources: [maps] }))).canary,
    ).toEqual([maps]);
    expect(resourceFences(taken("pilot"), claim("a", "", { ...taken("pilot"), classes: [[0], []] })).canary).toEqual([maps]);
    expect(resourceFences(taken("pilot", "fresh"), claim("a", "", taken("pilot"))).canary).toEqual([]);
  });
  it("are shared with a pod without a proxy, but not with a pod that has not reported", () => {
    const bare: Claim = { kind: "everything", podName: "bare", subset: "" };
    expect(resourceFences(open, bare).canary).toEqual(["unreported"]);
    expect(resourceFences(open, bare, claim("c", "canary", closed)).canary).toEqual([]);
    expect(resourceFences(closed, bare, claim("c", "canary", open)).canary).toEqual([maps]);
    const late: Claim = { kind: "everything", podName: "late", subset: undefined };
    expect(resourceFences(open, late).canary).toEqual([maps, "unreported"]);
    expect(resourceFences(open, late, claim("c", "canary", open)).canary).toEqual([]);
  });
});

describe("a sharded family", () => {
  const maps = group("", "configmaps");
  const secrets = group("", "secrets");
  const every = group("*");
  /** The shards canary and beta, with the home of the cluster scope and of one namespace. */
  const family = (home: "canary" | "beta", mover: "canary" | "beta", ...named: ResourceMatch[]) => {
    const at = { canary: [1], beta: [2] };
    return table([sharded(...named), subset("canary"), subset("beta")], { "": at[home], mover: at[mover], gap: [] });
  };
  const planned = (desired: RouteTable, ...claims: Claim[]) => {
    const plan = planFences(desired, ["", "canary", "beta"], claims);
    const of = (name: string) => [
      ...[...(plan.fenced.get(name) ?? [])].sort(),
      ...(plan.resourceFences.get(name) ?? []).map(({ because, resources }) => [because, ...resources]),
    ];
    return { default: of(""), canary: of("canary"), beta: of("beta"), waits: plan.waits.map(({ namespaces }) => namespaces) };
  };
  const before = family("canary", "canary", maps);

  it("moves namespaces and the cluster scope by fences, and no wait counts the cluster scope as a namespace", () => {
    const own = [claim("c", "canary", before), claim("b", "beta", before), claim("a", "", before)];
    expect(planned(family("canary", "beta", maps), ...own)).toEqual({
      default: [],
      canary: [],
      beta: ["mover"],
      waits: [["mover"]],
    });
    expect(planned(family("beta", "canary", maps), ...own)).toEqual({ default: [], canary: [], beta: [""], waits: [[]] });
    expect(planned(before, ...own)).toEqual({ default: [], canary: [], beta: [], waits: [] });
  });
  it("moves a resource as a whole, and nothing else, when the named resources change", () => {
    const own = (of: RouteTable) => [claim("c", "canary", of), claim("b", "beta", of)];
    const wider = family("canary", "canary", maps, secrets);
    const moves = { default: [["moves", secrets]], canary: [["moves", secrets]], beta: [["moves", secrets]], waits: [[], []] };
    expect(planned(wider, ...own(before))).toEqual(moves);
    expect(planned(before, ...own(wider))).toEqual(moves);
    expect(planned(family("canary", "canary", group("", "secrets", "configmaps")), ...own(wider)).waits).toEqual([]);
  });
  it("begins and ends safely: everything moves between it and a table without shards", () => {
    for (const open of [table([], { mover: [], gap: [] }), table([limit()], { mover: [0], gap: [0] })]) {
      const first = planned(before, claim("a", "", open));
      expect([first.canary, first.beta]).toEqual([["", "mover", ["moves", every, maps]], [["moves", every, maps]]]);
      expect(planned(open, claim("c", "canary", before)).default).toEqual(["", "mover", ["moves", every, maps]]);
    }
    // A namespace that the old table does not know is in the class of the cluster scope.
    const grown = table(before.rules, { fresh: [1], "": [1] });
    expect(planned(grown, claim("a", "", table([subset("beta")], { prod: [0] }))).canary).toEqual(["", ["moves", every, maps]]);
  });
  it("lets a new shard wait for pods that have not reported, and takes nothing from the others", () => {
    const late: Claim = { kind: "everything", podName: "late", subset: undefined };
    const plan = planned(before, late, claim("c", "canary", before));
    expect([plan.canary, plan.beta]).toEqual([
      [],
      [
        ["moves", every],
        ["unreported", every],
      ],
    ]);
    const told = { ...before, rules: [...before.rules, unreportedFence()] };
    expect(planned(before, late, claim("c", "canary", before), claim("b", "beta", told)).beta).toEqual([["unreported", every]]);
  });
  it("shares what it shares with a pod without a proxy, and has nothing else beside it", () => {
    const bare: Claim = { kind: "everything", podName: "bare", subset: "" };
    const plan = planned(before, bare);
    expect([plan.canary, plan.beta]).toEqual([["", "mover", ["unreported", every]], [["unreported", every]]]);
  });
});

describe("createHolders", () => {
  it("finds in a sharded family the shards alone, and in the cluster scope its home", () => {
    const holders = createHolders(
      table([sharded(group("", "pods")), subset("s1", group("", "pods"))], { "": [1], own: [1], gap: [] }),
    );
    expect(["", "own", "gap", "new"].map((name) => [...holders(name)])).toEqual([["s1"], ["s1"], [], []]);
  });
  it("finds the default subset in the cluster scope of any other table", () => {
    for (const rules of [[], [subset("canary")], [limit()]])
      expect([...createHolders(table(rules, { x: [0] }))("")]).toEqual([""]);
  });
  it("stops at the first rule for all resources", () => {
    const routes = table([subset("db", group("", "configmaps")), subset("canary"), subset("late")], { x: [0, 1, 2], y: [0] });
    expect([...createHolders(routes)("x")]).toEqual(["db", "canary"]);
    expect([...createHolders(routes)("y")]).toEqual(["db", ""]);
  });
  it("finds no subset outside of a limit on all resources", () => {
    expect([...createHolders(table([limit()], { out: [] }))("out")]).toEqual([]);
  });
  it("includes the default subset in unknown namespaces if some resource has no rule", () => {
    expect([...createHolders(table([subset("db", group("", "configmaps"))], {}))("new")]).toEqual([""]);
    expect([...createHolders(table([subset("canary")], {}))("new")]).toEqual([]);
  });
});
