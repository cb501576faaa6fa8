import { describe, expect, it } from "vitest";
import { parseTerms } from "../../../test/localkube/parse-terms.ts";
import { group } from "../../../test/support/route-table.ts";
import { objectLimitProblems, objectLimits } from "./shard-rules.ts";
import type { Shard } from "./shards.ts";

const [PODS, SERVICES, ALL] = [group("", "pods"), group("", "services"), group("*")];

/** A shard with one entry for each pair of a selector of objects and resources. */
function shard(
  name: string,
  ...entries: readonly (readonly [selector: string, ...resources: ReturnType<typeof group>[]])[]
): Shard {
  const rules = entries.map(([selector, ...resources], index) => {
    return {
      resources,
      contains: () => true,
      testText: "",
      terms: parseTerms(selector),
      origin: `${name}: spec.limits[${index}]`,
    };
  });
  return { name, pods: {}, rules };
}

describe("the labels of objects that a family selects", () => {
  it("become one limit for each selector, with the resources of all shards", () => {
    const shards = [
      shard("a", ["app=shop", PODS], ["", SERVICES]),
      shard("b", ["app=shop", PODS, group("apps", "deployments")]),
      shard("c", ["tier in (x,y)", group("batch", "jobs")]),
    ];
    expect(objectLimitProblems(shards)).toEqual([]);
    expect(objectLimits(shards)).toEqual([
      {
        kind: "object-limit",
        terms: parseTerms("app=shop"),
        resources: [PODS, group("apps", "deployments")],
        origin: "a: spec.limits[0]",
      },
      {
        kind: "object-limit",
        terms: parseTerms("tier in (x,y)"),
        resources: [group("batch", "jobs")],
        origin: "c: spec.limits[0]",
      },
    ]);
  });

  it("are the same in whichever order and form they are written", () => {
    const shards = [shard("a", ["app=shop,tier in (x,y)", PODS]), shard("b", ["tier in (y,x),app in (shop)", PODS])];
    expect(objectLimitProblems(shards)).toEqual([]);
    expect(objectLimits(shards)).toHaveLength(1);
  });

  it("are refused if two shards select a common resource by different ones, with both places", () => {
    expect(objectLimitProblems([shard("a", ["app=shop", PODS]), shard("b", ["", SERVICES], ["app=web", PODS])])).toEqual([
      "b: spec.limits[1] and a: spec.limits[0] name a common resource and select its objects by different labels (app=web and app=shop): all shards of a family must select them by the same labels; only the computed keys may differ",
    ]);
  });

  it.each([
    ["one of them by none", shard("a", ["app=shop", PODS]), shard("b", ["", PODS])],
    ["one of them names it by a wildcard", shard("a", ["app=shop", PODS]), shard("b", ["", ALL])],
    ["the earlier one names it by a wildcard", shard("a", ["", ALL]), shard("b", ["app=shop", PODS])],
    [
      "another selector of the same family stands between",
      shard("a", ["x=1", PODS], ["y=1", SERVICES]),
      shard("b", ["x=1", SERVICES]),
    ],
  ])("are refused if %s", (_, a, b) => {
    expect(objectLimitProblems([a, b])).toHaveLength(1);
  });

  it("do not concern shards that name other resources", () => {
    expect(objectLimitProblems([shard("a", ["app=shop", PODS]), shard("b", ["app=web", SERVICES])])).toEqual([]);
  });

  it("are checked in linear time, with a bounded number of problems", () => {
    const many = (name: string) =>
      Array.from({ length: 500 }, (_, index) =>
        shard(
          `${name}-${index}`,
          ...Array.from({ length: 32 }, (_none, at) => [`${name}=${index}-${at}`, group(`g${index}`, `r${at}`)] as const),
        ),
      );
    expect(objectLimitProblems(many("a"))).toEqual([]);
    expect(objectLimitProblems([...many("a"), ...many("b")])).toHaveLength(20);
  });
});
