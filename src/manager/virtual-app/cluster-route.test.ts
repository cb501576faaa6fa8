import { describe, expect, it } from "vitest";
import type { VirtualAppSpec } from "../../api/virtual-app.ts";
import { ownersOf } from "../../mesh/ownership/owners.ts";
import { ownerText } from "../../mesh/ownership/words.ts";
import { compileNow } from "../apps/compile/compile-now.ts";
import type { ClusterFacts } from "../apps/compile/route-spec.ts";
import { clusterRulesIn } from "./cluster-owners.ts";
import { explainClusterRules } from "./explain-rules.ts";
import { clusterRouteOf, routeOf } from "./route-rules.ts";

type Match = NonNullable<NonNullable<VirtualAppSpec["route"]>["subRules"]>[number]["match"][number];

const specOf = (match: readonly Match[], route: object = {}): VirtualAppSpec => ({
  selector: { matchLabels: { app: "shop" } },
  route: { subRules: [{ name: "part", match }], ...route },
  subsets: [{ name: "blue", labels: { version: "blue" }, routeRules: ["part"] }],
});
const NONE = new Map();
const EU = { name: "eu", labels: { region: "eu" }, upstream: { url: "https://eu.example" } };
const TUNNEL = { name: "eu", labels: { region: "eu" } };
const NAMESPACES = [
  { name: "gold-a", labels: { tier: "gold" } },
  { name: "silver-a", labels: { tier: "silver" } },
];
/** Of pods in each namespace, and of what is in no namespace. */
const owners = (match: readonly Match[], { route = {}, cluster = EU, resource = "pods" } = {}) => {
  const { ownerOf } = ownersOf(compileNow(clusterRouteOf(specOf(match, route), cluster, NONE), NAMESPACES), "", resource);
  return ["gold-a", "silver-a", ""].map((place) => ownerText(ownerOf(place)));
};
const BLUE = 'subset "blue"';
const DEFAULT = "the default subset";

describe("the namespaces of a cluster with interception: Terminate", () => {
  it.each<[string, Match[], string[]]>([
    ["a term with clusters alone gives all, and the cluster scope", [{ clusters: ["eu"] }], [BLUE, BLUE, BLUE]],
    [
      "a selector gives some",
      [{ clusters: ["eu"], namespaceSelector: { matchLabels: { tier: "gold" } } }],
      [BLUE, DEFAULT, DEFAULT],
    ],
    [
      "an expression gives some",
      [{ clusterSelector: { matchLabels: { region: "eu" } }, namespaceRegex: "^silver" }],
      [DEFAULT, BLUE, DEFAULT],
    ],
    ["a term about other clusters gives none", [{ clusters: ["us"] }], [DEFAULT, DEFAULT, DEFAULT]],
    [
      "a term without clusters is about the home cluster",
      [{ namespaceRegex: "^gold" }, { clusters: ["us"] }],
      [DEFAULT, DEFAULT, DEFAULT],
    ],
  ])("%s", (_, match, expected) => {
    expect(owners(match)).toEqual(expected);
  });

  it("belong to the subset for the term's resources only", () => {
    const match = [{ clusters: ["eu"], resources: [{ apiGroups: [""], resources: ["secrets"] }] }];
    expect(owners(match, { resource: "secrets" })).toEqual([BLUE, BLUE, BLUE]);
    expect(owners(match)).toEqual([DEFAULT, DEFAULT, DEFAULT]);
  });

  it("share the resources that the app shares", () => {
    const route = { subsetPublicResources: [{ apiGroups: [""], resources: ["configmaps"] }] };
    const match = [{ clusters: ["eu"], namespaceRegex: "^gold" }];
    expect(owners(match, { route, resource: "configmaps" })).toEqual(["every subset", "every subset", "every subset"]);
  });

  it("are not limited by globalLimits, which are about the home cluster", () => {
    expect(owners([{ clusters: ["eu"] }], { route: { globalLimits: [{ namespaceRegex: "^gold" }] } })).toEqual([
      BLUE,
      BLUE,
      BLUE,
    ]);
  });
});

it("a term with namespaces inside clusters gives no namespace at home", () => {
  const route = routeOf(specOf([{ clusters: ["eu"], namespaceRegex: "^gold" }, { namespaceRegex: "^silver" }]));
  expect(route.rules.map(({ origin }) => origin)).toEqual(["subRules[part].match[1]"]);
  expect(route.expressions).toEqual(["^silver"]);
});

describe("a term with namespaces, and a cluster with one owner", () => {
  const spec = specOf([{ clusters: ["eu"], namespaceRegex: "^gold" }]);

  it("gives nothing of the cluster, and is named", () => {
    expect(clusterRulesIn(spec, "shop").clusterOwners?.([TUNNEL, EU], NONE)).toEqual(new Map([["eu", ""]]));
    const idle = (of: VirtualAppSpec, cluster: ClusterFacts) => clusterRulesIn(of, "shop").idleClusterRules?.(cluster, NONE);
    expect(idle(spec, TUNNEL)).toEqual(["subRules[part].match[0]"]);
    expect(idle(spec, EU)).toEqual([]);
    expect(idle(specOf([{ clusters: ["eu"] }]), TUNNEL)).toEqual([]);
  });

  it("is explained", () => {
    expect(explainClusterRules(spec, TUNNEL, NONE)[0]).toEqual({
      rule: "subRules[part].match[0]",
      subset: "blue",
      match: "no",
      why: "clusters has eu, but the term is about namespaces: that needs interception: Terminate",
    });
    expect(explainClusterRules(spec, EU, NONE)).toMatchObject([
      { match: "by namespace", why: "clusters has eu; only for the namespaces and resources of the term" },
      { rule: "(no rule)", match: "yes" },
    ]);
  });
});
