import { describe, expect, it } from "vitest";
import type { VirtualAppSpec } from "../../api/virtual-app.ts";
import { NONE_CHOSEN } from "../apps/chosen-clusters.ts";
import { clusterRulesIn } from "./cluster-owners.ts";

function spec(
  subRules: NonNullable<NonNullable<VirtualAppSpec["route"]>["subRules"]>,
  subsets: Record<string, string[]>,
): VirtualAppSpec {
  const listed = Object.entries(subsets).map(([name, routeRules]) => ({ name, labels: { version: name }, routeRules }));
  return { selector: { matchLabels: { app: "shop" } }, route: { subRules }, subsets: listed };
}

it("the first subset in spec order with a matching rule owns a cluster, and the default subset all others", () => {
  const rules = [
    { name: "named", match: [{ clusters: ["eu-1", "eu-2"] }] },
    { name: "labelled", match: [{ namespaceRegex: "^a" }, { clusterSelector: { matchLabels: { region: "eu" } } }] },
  ];
  const { clusterOwners } = clusterRulesIn(spec(rules, { blue: ["labelled"], green: ["named"] }), "shop");
  const clusters = [
    { name: "eu-1", labels: { region: "eu" } },
    { name: "eu-2", labels: {} },
    { name: "us-1", labels: { region: "us" } },
  ];
  expect(Object.fromEntries(clusterOwners?.(clusters, NONE_CHOSEN) ?? [])).toEqual({
    "eu-1": "blue",
    "eu-2": "green",
    "us-1": "",
  });
});

it("an app divides no cluster unless a subset uses a rule about clusters", () => {
  const rules = [
    { name: "unused", match: [{ clusters: ["eu-1"] }] },
    { name: "home", match: [{ namespaceRegex: "^a" }] },
  ];
  expect(clusterRulesIn(spec(rules, { blue: ["home"] }), "shop")).toEqual({});
});

describe("a rule with clustersFrom", () => {
  const rules = [
    { name: "chosen", match: [{ clustersFrom: { placementDecision: "fleet" } }] },
    { name: "named", match: [{ clusters: ["eu-1"] }] },
  ];
  const divided = (subsets: Record<string, string[]>, names: readonly string[] | undefined) => {
    const { clusterOwners, decisionKeys, missingDecision } = clusterRulesIn(spec(rules, subsets), "shop");
    const chosen = new Map(names && [["fleet", new Set(names)]]);
    const clusters = [
      { name: "eu-1", labels: {}, owners: new Map([["other", "green"]]) },
      { name: "eu-2", labels: {}, owners: new Map([["shop", "blue"]]) },
      { name: "us-1", labels: {}, owners: new Map([["shop", "gone"]]) },
    ];
    return {
      owners: Object.fromEntries(clusterOwners?.(clusters, chosen) ?? []),
      decisionKeys,
      missing: clusters.map((cluster) => missingDecision?.(cluster, chosen)),
    };
  };

  it("matches the clusters that the PlacementDecision names", () => {
    const { owners, decisionKeys, missing } = divided({ green: ["chosen"], blue: ["named"] }, ["us-1", "unknown"]);
    expect([owners, decisionKeys]).toEqual([{ "eu-1": "blue", "eu-2": "", "us-1": "green" }, ["fleet"]]);
    expect(missing).toEqual([undefined, undefined, undefined]);
  });

  it("takes clusters away when the PlacementDecision is empty", () => {
    expect(divided({ blue: ["chosen"] }, []).owners).toEqual({ "eu-1": "", "eu-2": "", "us-1": "" });
  });

  it("leaves clusters with their owners while the PlacementDecision is missing, as far as these subsets exist", () => {
    const { owners, missing } = divided({ green: ["chosen"], blue: ["named"] }, undefined);
    expect([owners, missing]).toEqual([{ "eu-1": "", "eu-2": "blue", "us-1": "" }, ["fleet", "fleet", "fleet"]]);
  });

  it("that is missing does not concern clusters that an earlier rule matches", () => {
    const { owners, missing } = divided({ blue: ["named"], green: ["chosen"] }, undefined);
    expect([owners["eu-1"], missing]).toEqual(["blue", [undefined, "fleet", "fleet"]]);
  });
});
