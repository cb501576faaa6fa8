import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseTerms } from "../../../test/localkube/parse-terms.ts";
import {
  fence,
  group,
  limit,
  objectLimit,
  objects,
  sharded,
  subset,
  table,
  unreportedFence,
} from "../../../test/support/route-table.ts";
import { formatTerms, matchesTerms } from "../../kube/label-selector.ts";
import { isOwnedBy, ownersOf } from "./owners.ts";
import { matchesResource, type RouteRule } from "./table.ts";
import { ownerText } from "./words.ts";

const routes = table([limit(), subset("canary"), subset("db", group("", "configmaps"))], {
  prod: [0],
  pilot: [0, 1],
  both: [0, 1, 2],
  data: [0, 2],
  system: [],
});

describe("ownersOf", () => {
  const pods = ownersOf(routes, "", "pods");
  const configMaps = ownersOf(routes, "", "configmaps");

  it("gives a namespace that no subset rule contains to the default subset", () => {
    expect(pods.ownerOf("prod")).toEqual({ kind: "subset", subset: "" });
  });
  it("gives a namespace to the first subset in spec order whose rule applies", () => {
    expect(configMaps.ownerOf("both")).toEqual({ kind: "subset", subset: "canary" });
    expect(configMaps.ownerOf("data")).toEqual({ kind: "subset", subset: "db" });
  });
  it("applies a rule with resources to these resources only", () => {
    expect(pods.ownerOf("data")).toEqual({ kind: "subset", subset: "" });
  });
  it("gives a namespace outside of a global limit to nobody and names the limit", () => {
    expect(pods.ownerOf("system")).toEqual({ kind: "nobody", origin: "spec.route.globalLimits[0]" });
  });
  it("gives cluster-scoped objects to the default subset", () => {
    expect(pods.ownerOf("")).toEqual({ kind: "subset", subset: "" });
  });
  it("gives a bucket of cluster-scoped names to its shard, or as the cluster scope where the table does not divide it", () => {
    const maps = group("", "configmaps");
    const family = table([sharded(maps), subset("s1"), subset("s2")], { "": [1], "#1": [1], "#2": [2] });
    const ownerIn = (of: typeof family, place: string) => ownerText(ownersOf(of, "", "configmaps").ownerOf(place));
    expect(["", "#1", "#2", "#3"].map((place) => ownerIn(family, place))).toEqual([
      'subset "s1"',
      'subset "s1"',
      'subset "s2"',
      'subset "s1"',
    ]);
    const moving = (...fenced: string[]) =>
      ["", "#1", "#3"].filter((place) => ownerIn({ ...family, fenced: new Set(fenced) }, place).includes("moving"));
    expect([moving(""), moving("#1"), moving("#3")]).toEqual([["", "#3"], ["#1"], ["#3"]]);
    expect(pods.ownerOf("#1")).toEqual({ kind: "subset", subset: "" });
  });
  it("does not guess about a namespace that it has never heard of", () => {
    expect(pods.ownerOf("new")).toEqual({ kind: "unknown" });
  });
  it("gives a fenced namespace to nobody until it has moved", () => {
    const moving = { ...routes, fenced: new Set(["pilot"]) };
    expect(ownersOf(moving, "", "pods").ownerOf("pilot")).toEqual({ kind: "moving" });
  });
});

describe("public resources", () => {
  const open = { ...routes, sharedResources: [group("", "secrets")] };

  it("belong to every subset, cluster-scoped and in every namespace", () => {
    const secrets = ownersOf(open, "", "secrets");
    expect([secrets.ownerOf(""), secrets.ownerOf("pilot"), secrets.ownerOf("new"), secrets.sole]).toEqual(
      Array(4).fill({ kind: "everyone" }),
    );
  });
  it("do not move with a namespace", () => {
    const secrets = ownersOf({ ...open, fenced: new Set(["pilot"]) }, "", "secrets");
    expect([secrets.ownerOf("pilot"), secrets.sole]).toEqual(Array(2).fill({ kind: "everyone" }));
  });
  it("still obey a rule that names them", () => {
    const named = { ...open, sharedResources: [group("", "configmaps")] };
    expect(ownersOf(named, "", "configmaps").ownerOf("data")).toEqual({ kind: "subset", subset: "db" });
    expect(ownersOf(named, "", "configmaps").ownerOf("pilot")).toEqual({ kind: "everyone" });
  });
});

describe("a resource without any rule", () => {
  const narrow = table([subset("db", group("", "configmaps"))], { data: [0] });

  it("belongs to the default subset in namespaces that are not known yet, too", () => {
    expect(ownersOf(narrow, "", "pods").ownerOf("new")).toEqual({ kind: "subset", subset: "" });
    expect(ownersOf(narrow, "", "pods").sole).toEqual({ kind: "subset", subset: "" });
  });
  it("has no sole owner while something moves", () => {
    expect(ownersOf({ ...narrow, fenced: new Set(["data"]) }, "", "pods").sole).toBeUndefined();
  });
});

describe("a table with a sharded rule", () => {
  const maps = group("", "configmaps");
  const family = table([sharded(maps), subset("s1", group("")), subset("s2"), objectLimit("a", maps)], {
    "": [0, 2],
    one: [0, 1],
    both: [1, 2],
    gap: [0],
  });
  const named = ownersOf(family, "", "configmaps");
  const SECOND = { kind: "subset", subset: "s2" };
  const NOBODY = { kind: "nobody", origin: "spec.limits", isGap: true };

  it("gives a named resource to the first shard that contains the namespace or the cluster scope, else to nobody", () => {
    expect(["", "one", "both", "gap"].map((place) => named.ownerOf(place))).toEqual([
      SECOND,
      { kind: "subset", subset: "s1" },
      { kind: "subset", subset: "s1" },
      NOBODY,
    ]);
    expect([named.ownerOf("new"), named.sole, named.isByNamespace]).toEqual([{ kind: "unknown" }, undefined, true]);
    expect(ownersOf({ ...family, fenced: new Set(["", "one"]) }, "", "configmaps").ownerOf("")).toEqual({ kind: "moving" });
  });
  it("gives nothing of a named resource to the default subset, also if no shard contains anything", () => {
    const empty = ownersOf(table([sharded(group("*"))], { gap: [] }), "", "pods");
    expect(["", "gap", "new"].map((place) => empty.ownerOf(place))).toEqual([NOBODY, NOBODY, { kind: "unknown" }]);
    expect([empty.sole, isOwnedBy(empty.ownerOf("gap"), "")]).toEqual([undefined, false]);
  });
  it("gives every other resource to everyone, and it moves with no namespace", () => {
    const pods = ownersOf({ ...family, fenced: new Set(["", "one"]) }, "", "pods");
    expect([pods.sole, ...["", "one", "gap", "new"].map((place) => pods.ownerOf(place))]).toEqual(
      Array(5).fill({ kind: "everyone" }),
    );
    expect(pods.isByNamespace).toBe(false);
  });
  it("keeps to limits, and to the fences of resources", () => {
    expect(named.ownerOf("one", {})).toEqual({ kind: "nobody", origin: "spec.route.globalLimits[0]" });
    const fenced = (rule: RouteRule, resource: string) =>
      ownersOf({ ...family, rules: [...family.rules, rule] }, "", resource).ownerOf("one").kind;
    expect(fenced(fence(group("*")), "pods")).toBe("moving");
    expect(["pods", "configmaps"].map((resource) => fenced(unreportedFence(), resource))).toEqual(["everyone", "moving"]);
  });
  it("names the gap in words", () => {
    expect(ownerText(named.ownerOf("gap"), "gap")).toBe('nobody: no shard of this family contains namespace "gap"');
    expect(ownerText(named.ownerOf("gap"))).toBe("nobody: no shard of this family contains them");
  });
});

it("matchesResource takes * as wildcard in both lists", () => {
  expect(matchesResource([{ apiGroups: ["*"], resources: ["pods"] }], "x", "pods")).toBe(true);
  expect(matchesResource([{ apiGroups: [""], resources: ["*"] }], "x", "pods")).toBe(false);
});

describe("a resource that labels divide", () => {
  const maps = group("", "configmaps");
  const rules = [objects("gold", "tier=gold", maps), objects("eu", "region in (eu,uk)", maps), subset("canary", group("apps"))];
  const divided = table([...rules, limit(group("", "*"))], { prod: [3], pilot: [2, 3], out: [] });
  const owners = ownersOf(divided, "", "configmaps");

  it("gives an object to the first subset whose selector matches, in every namespace, else to the default one", () => {
    const owner = (labels: Record<string, string>) => owners.ownerOf("prod", labels);
    expect(owner({ tier: "gold", region: "eu" })).toEqual({ kind: "subset", subset: "gold" });
    expect(owner({ region: "uk" })).toEqual({ kind: "subset", subset: "eu" });
    expect(owner({ tier: "silver" })).toEqual({ kind: "subset", subset: "" });
    expect(owners.ownerOf("", { tier: "gold" })).toEqual({ kind: "subset", subset: "gold" });
  });
  it("is owned by several as long as no labels are known", () => {
    expect(owners.ownerOf("prod")).toEqual({ kind: "labels", subsets: ["gold", "eu"] });
    expect(["gold", "eu", "", "canary"].map((name) => isOwnedBy(owners.ownerOf("prod"), name))).toEqual([
      true,
      true,
      true,
      false,
    ]);
  });
  it("keeps to the limits on namespaces, whatever the labels are", () => {
    expect(owners.ownerOf("out", { tier: "gold" })).toMatchObject({ kind: "nobody" });
    expect(owners.ownerOf("new", { tier: "gold" })).toEqual({ kind: "unknown" });
    expect(owners.sole).toBeUndefined();
  });
  it("does not wait for a namespace where none of the rules is about namespaces", () => {
    const free = ownersOf(table(rules, {}), "", "configmaps");
    expect(free.ownerOf("new", {})).toEqual({ kind: "subset", subset: "" });
    expect(free.sole).toMatchObject({ kind: "labels" });
  });
  it("moves as a whole, cluster-scoped objects too, and with its namespace", () => {
    const moving = ownersOf({ ...divided, rules: [...divided.rules, fence(maps)] }, "", "configmaps");
    expect(["", "prod", "new"].map((namespace) => moving.ownerOf(namespace, {}))).toEqual(Array(3).fill({ kind: "moving" }));
    expect(moving.sole).toBeUndefined();
    expect(ownersOf({ ...divided, fenced: new Set(["prod"]) }, "", "configmaps").ownerOf("prod", {})).toEqual({ kind: "moving" });
  });
  it("says that it moves by the fence's reason and not by its width; only what moves stops where it is public", () => {
    const open = table([], {}, { sharedResources: [group("", "secrets")] });
    const fenced = (rule: RouteRule, resource: string) => {
      const of = ownersOf({ ...open, rules: [rule] }, "", resource);
      return [of.isMoving, of.ownerOf("prod").kind, of.sole?.kind];
    };
    expect(fenced(fence(group("*")), "pods")).toEqual([true, "moving", undefined]);
    expect(fenced(fence(group("*")), "secrets")).toEqual([true, "moving", undefined]);
    expect(fenced(unreportedFence(), "pods")).toEqual([false, "moving", undefined]);
    expect(fenced(unreportedFence(), "secrets")).toEqual([false, "everyone", "everyone"]);
  });
  it("is not public any more, and rules on namespaces have no say in it", () => {
    const mixed = table([subset("canary"), ...rules], { pilot: [0] }, { sharedResources: [group("*")] });
    expect(ownersOf(mixed, "", "configmaps").ownerOf("pilot", {})).toEqual({ kind: "subset", subset: "" });
    expect(ownersOf(mixed, "", "pods").ownerOf("pilot", {})).toEqual({ kind: "everyone" });
  });
  it("leaves other resources alone", () => {
    expect(ownersOf(divided, "apps", "deployments").ownerOf("pilot", { tier: "gold" })).toEqual({
      kind: "subset",
      subset: "canary",
    });
    expect(ownersOf(divided, "", "secrets").termsOf("gold")).toEqual([]);
  });
});

it("a limit on labels takes objects away from everybody, public ones too", () => {
  const limited = table([objectLimit("env=prod,!broken")], {}, { sharedResources: [group("", "secrets")] });
  expect(ownersOf(limited, "", "secrets").termsOf("x")).toEqual([]); // a public resource has to be named
  const named = table([objectLimit("env=prod,!broken", group("", "secrets"))], {}, { sharedResources: [group("", "secrets")] });
  const secrets = ownersOf(named, "", "secrets");
  expect(secrets.ownerOf("a", { env: "prod" })).toEqual({ kind: "everyone" });
  expect(secrets.ownerOf("a", { env: "prod", broken: "" })).toEqual({ kind: "nobody", origin: "spec.route.globalLimits[0]" });
  expect(secrets.termsOf("x")).toHaveLength(2);
});

describe("the label selectors of all subsets", () => {
  const KEYS = ["a", "b"];
  const VALUES = ["", "x", "y"];
  const term = fc.record({ key: fc.constantFrom(...KEYS), values: fc.subarray(VALUES, { minLength: 1 }) }).chain((row) =>
    fc.constantFrom("in", "notin", "exists", "!").map((operator) => ({
      ...row,
      operator,
      values: operator === "in" || operator === "notin" ? row.values : [],
    })),
  );
  const maps = group("", "configmaps");
  const rule = fc.oneof(
    fc
      .record({ subset: fc.constantFrom("s1", "s2", "s3"), term })
      .map((row) => ({ kind: "objects", resources: [maps], origin: "o", ...row })),
    fc.array(term, { maxLength: 2 }).map((list) => ({ kind: "object-limit", terms: list, resources: [maps], origin: "l" })),
  );
  const labels = fc.dictionary(fc.constantFrom(...KEYS), fc.constantFrom(...VALUES));

  it("give every object to the one subset that the table says owns it, and to no other", () => {
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 4 }), labels, (rules, own) => {
        const owners = ownersOf(table(rules as RouteRule[], {}), "", "configmaps");
        const owner = owners.ownerOf("any", own);
        const shown = ["", "s1", "s2", "s3"].filter((name) => {
          const text = formatTerms(owners.termsOf(name));
          return isOwnedBy(owners.ownerOf("any"), name) && matchesTerms(parseTerms(text), own); // as the API server reads it
        });
        expect(shown).toEqual(owner.kind === "subset" ? [owner.subset] : []);
      }),
      { numRuns: 2_000 },
    );
  });
});
