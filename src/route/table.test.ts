import { describe, expect, it } from "vitest";
import { group, limit, subset, table } from "../../test/support/route-table.ts";
import { matchesResource, ownersOf } from "./table.ts";

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
  it("does not guess about a namespace that it has never heard of", () => {
    expect(pods.ownerOf("new")).toEqual({ kind: "unknown" });
  });
  it("gives a fenced namespace to nobody until it has moved", () => {
    const moving = { ...routes, fenced: new Set(["pilot"]) };
    expect(ownersOf(moving, "", "pods").ownerOf("pilot")).toEqual({ kind: "moving" });
  });
});

describe("public resources", () => {
  const open = { ...routes, publicResources: [group("", "secrets")] };

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
    const named = { ...open, publicResources: [group("", "configmaps")] };
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

it("matchesResource takes * as wildcard in both lists", () => {
  expect(matchesResource([{ apiGroups: ["*"], resources: ["pods"] }], "x", "pods")).toBe(true);
  expect(matchesResource([{ apiGroups: [""], resources: ["*"] }], "x", "pods")).toBe(false);
});
