import { describe, expect, it } from "vitest";
import { group, limit, sharded, snapshot, subset, table } from "../../../test/support/route-table.ts";
import { createPlanner, excludedNamespaces, isHiddenBy, joinSelectors, NO_PLAN, planQuery } from "./plan-query.ts";
import type { ResourceView } from "./snapshot.ts";
import { viewOf } from "./view-of.ts";

const many = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}-${index}`);

function view(blue: readonly string[], rest: readonly string[], own = "blue"): ResourceView {
  const members = Object.fromEntries([...blue.map((name) => [name, [0]]), ...rest.map((name) => [name, []])]);
  return viewOf(snapshot(table([subset("blue")], members), { subset: own }), "", "pods");
}

const labelled = (of: ResourceView): ResourceView => ({
  ...of,
  labelFilter: { labelSelector: "team=blue", matches: ({ team }) => team === "blue" },
});

describe("the plan for a list over all namespaces", () => {
  it("takes the cluster scope of a sharded family for no namespace", () => {
    const maps = group("", "configmaps");
    const family = (home: number) => table([sharded(maps), subset("s1"), subset("s2")], { "": [home], a: [1], b: [2] });
    for (const home of [1, 2]) {
      const [own, other] = ["s1", "s2"].map((name) => viewOf(snapshot(family(home), { subset: name }), "", "configmaps"));
      expect([own?.namespaces(), other?.namespaces()]).toEqual([
        { own: ["a"], others: ["b"] },
        { own: ["b"], others: ["a"] },
      ]);
      expect(own && planQuery(own, "namespaced")).toMatchObject({ namespacePlan: "one-namespace", only: "a" });
    }
  });

  it("is the one namespace that is owned, whatever the server can do", () => {
    const plan = planQuery(view(["a"], many("b", 100)), "namespaced", { shardBytes: 0 });
    expect(plan).toMatchObject({ namespacePlan: "one-namespace", fieldSelector: "metadata.namespace=a", only: "a" });
  });

  it("leaves a few foreign namespaces out by name", () => {
    const plan = planQuery(view(["a", "c"], ["b"]), "namespaced");
    expect(plan).toMatchObject({ namespacePlan: "without-namespaces", fieldSelector: "metadata.namespace!=b" });
    expect(plan.shards).toBeUndefined();
  });

  it("is ranges of hashes where the foreign ones are many", () => {
    const plan = planQuery(view(many("a", 40), many("b", 40)), "namespaced");
    expect(plan).toMatchObject({ namespacePlan: "shards", fieldSelector: "", namespaces: { own: 40, foreign: 40 } });
    const hiding = { only: undefined, excluded: [], shards: plan.shards };
    expect(many("a", 40).some((name) => isHiddenBy(hiding, name))).toBe(false);
    expect(many("b", 40).every((name) => isHiddenBy(hiding, name))).toBe(true);
  });

  it("is nothing where many are foreign and the server knows no ranges", () => {
    expect(planQuery(view(["a", "c"], many("b", 40)), "namespaced", { shardBytes: 0 })).toMatchObject({ namespacePlan: "none" });
  });

  it("asks for nothing at all where no namespace is owned", () => {
    const plan = planQuery(view([], many("b", 40)), "namespaced");
    expect(plan).toMatchObject({
      namespacePlan: "nothing",
      fieldSelector: "metadata.namespace=default,metadata.namespace!=default",
      only: "",
    });
    expect(isHiddenBy({ only: plan.only, excluded: excludedNamespaces(plan) }, "born-later")).toBe(true);
  });

  it("never hides namespaces that nobody has heard of where they are ours", () => {
    // No rule is about pods, so new namespaces are the default subset's; one of the known ones moves.
    const routes = table([limit({ apiGroups: ["x.io"], resources: ["*"] })], { a: [], b: [] }, { fenced: ["b"] });
    const plan = planQuery(viewOf(snapshot(routes, { subset: "" }), "", "pods"), "namespaced");
    expect(plan).toMatchObject({ namespacePlan: "without-namespaces", fieldSelector: "metadata.namespace!=b" });
  });

  it("says nothing of namespaces where the resource has none, or nobody knows", () => {
    for (const scope of ["cluster", "unknown"] as const) expect(planQuery(view(["a"], ["b"]), scope)).toEqual(NO_PLAN);
  });

  it("sends the labels of the objects beside everything else, in every scope", () => {
    expect(planQuery(labelled(view(["a"], ["b"])), "namespaced")).toMatchObject({
      namespacePlan: "one-namespace",
      labelSelector: "team=blue",
      fieldSelector: "metadata.namespace=a",
    });
    expect(planQuery(labelled(view(["a"], ["b"])), "cluster")).toMatchObject({
      namespacePlan: "none",
      labelSelector: "team=blue",
    });
  });

  it("is made once a view", () => {
    const planner = createPlanner();
    const of = view(many("a", 40), many("b", 40));
    expect(planner(of, "namespaced")).toBe(planner(of, "namespaced"));
    expect(planner(of, "unknown")).toMatchObject({ namespacePlan: "none" });
  });
});

it("selectors are ANDed to the caller's", () => {
  // No space to the API server, which refuses it: our own selector alone would do what the caller did not ask
  // for.
  expect(joinSelectors("\u00a0", "a=b")).toBe("\u00a0,a=b");
  expect(joinSelectors(" \t\r\n", "a=b")).toBe("a=b");
  expect([joinSelectors(null, "a=b"), joinSelectors(" ", "a=b"), joinSelectors("c", "a=b")]).toEqual(["a=b", "a=b", "c,a=b"]);
});
