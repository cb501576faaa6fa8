import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import type { VirtualAppSpec } from "../../api/virtual-app.ts";
import { ownersOf } from "../../mesh/ownership/owners.ts";
import { subsetDisplayName } from "../../mesh/ownership/words.ts";
import { NONE_CHOSEN } from "../apps/chosen-clusters.ts";
import { compileNow } from "../apps/compile/compile-now.ts";
import { clusterRulesIn } from "./cluster-owners.ts";
import { explainClusterRules, explainRules } from "./explain-rules.ts";
import { routeOf } from "./route-rules.ts";

const specWith = (route: object, ...subsets: string[]) =>
  sampleVirtualApp({
    route,
    subsets: subsets.map((name) => ({ name, labels: { of: name }, routeRules: [name] })),
  }).spec as unknown as VirtualAppSpec;
const ask = (spec: VirtualAppSpec, name: string, labels = {}) => explainRules(spec, { name, labels });

describe("the rules that match a namespace", () => {
  const spec = specWith(
    {
      globalLimits: [{ namespaceRegex: "^(team|canary)-" }],
      subRules: [
        { name: "a", match: [{ namespaceRegex: "^canray" }, { namespaceSelector: { matchLabels: { tier: "gold" } } }] },
        { name: "b", match: [{ namespaceSelector: { matchExpressions: [{ key: "eu", operator: "Exists" }] } }] },
      ],
    },
    "a",
    "b",
  );

  it("show what was compared, so that a wrong expression is seen", () => {
    expect(ask(spec, "canary-eu", { tier: "silver" })).toEqual([
      {
        rule: "globalLimits[0]",
        subset: undefined,
        match: "yes",
        why: "namespaceRegex ^(team|canary)-, and the name is canary-eu",
      },
      { rule: "subRules[a].match[0]", subset: "a", match: "no", why: "namespaceRegex ^canray, and the name is canary-eu" },
      {
        rule: "subRules[a].match[1]",
        subset: "a",
        match: "no",
        why: "namespaceSelector tier=gold, and the label tier is silver",
      },
      { rule: "subRules[b].match[0]", subset: "b", match: "no", why: "namespaceSelector eu, and there is no label eu" },
      { rule: "(no rule)", subset: "default", match: "yes", why: "the default subset has what no rule gives to another one" },
    ]);
  });
  it("end with the one that decides", () => {
    const answers = ask(spec, "team-a", { tier: "gold", eu: "" }).map(({ rule, match }) => [rule, match]);
    expect(answers.slice(2)).toEqual([
      ["subRules[a].match[1]", "yes"],
      ["subRules[b].match[0]", "not reached"],
      ["(no rule)", "not reached"],
    ]);
    const outside = ask(spec, "prod").map(({ match }) => match);
    expect(outside).toEqual(["no", "not reached", "not reached", "not reached", "not reached"]);
  });
});

it("name the owner that the compiled routes name, for random specs and namespaces", () => {
  const term = fc.oneof(
    fc.constantFrom("^a", "b$", "x").map((namespaceRegex) => ({ namespaceRegex })),
    fc.constantFrom("gold", "silver").map((tier) => ({ namespaceSelector: { matchLabels: { tier } } })),
  );
  const specs = fc
    .record({
      limits: fc.array(term, { maxLength: 2 }),
      a: fc.array(term, { minLength: 1, maxLength: 3 }),
      b: fc.array(term, { minLength: 1, maxLength: 2 }),
    })
    .map(({ limits, a, b }) =>
      specWith(
        {
          globalLimits: limits,
          subRules: [
            { name: "a", match: a },
            { name: "b", match: b },
          ],
        },
        "a",
        "b",
      ),
    );
  const namespaces = fc.record({
    name: fc.constantFrom("a", "ab", "b", "xx", "none"),
    labels: fc.constantFrom<Record<string, string>>({}, { tier: "gold" }, { tier: "silver" }),
  });
  fc.assert(
    fc.property(specs, namespaces, (spec, namespace) => {
      const decided = explainRules(spec, namespace).findLast(({ match }) => match === "yes" || match === "no");
      const owner = ownersOf(compileNow(routeOf(spec), [namespace]), "", "pods").ownerOf(namespace.name);
      const expected = owner.kind === "subset" ? owner.subset || "default" : undefined;
      expect(decided?.match === "yes" ? decided.subset : undefined).toBe(expected);
    }),
    { numRuns: 500 },
  );
});

describe("the rules that match another cluster", () => {
  const spec = specWith(
    {
      subRules: [
        { name: "a", match: [{ namespaceRegex: "^x" }, { clusters: ["eu-1"] }] },
        { name: "b", match: [{ clusterSelector: { matchLabels: { region: "eu" } } }] },
      ],
    },
    "a",
    "b",
  );

  it("show what was compared, and end with the one that decides", () => {
    expect(explainClusterRules(spec, { name: "eu-2", labels: { region: "eu" } }, NONE_CHOSEN)).toEqual([
      { rule: "subRules[a].match[1]", subset: "a", match: "no", why: "clusters does not have eu-2" },
      { rule: "subRules[b].match[0]", subset: "b", match: "yes", why: "clusterSelector region=eu, and the labels match" },
      { rule: "(no rule)", subset: "default", match: "not reached", why: "subRules[b].match[0] has decided" },
    ]);
    const last = explainClusterRules(spec, { name: "us-1", labels: { region: "us" } }, NONE_CHOSEN);
    expect(last[1]).toMatchObject({ match: "no", why: "clusterSelector region=eu, and the label region is us" });
    expect(last[2]).toMatchObject({ subset: "default", match: "yes" });
  });

  it("decide as the owners of the app do", () => {
    const clusters = ["eu-1", "eu-2", "us-1"].map((name) => ({ name, labels: { region: name.slice(0, 2) } }));
    const owners = clusterRulesIn(spec, "shop").clusterOwners?.(clusters, NONE_CHOSEN);
    for (const cluster of clusters) {
      const decides = explainClusterRules(spec, cluster, NONE_CHOSEN).find(({ match }) => match === "yes");
      expect(decides?.subset).toBe(subsetDisplayName(owners?.get(cluster.name) ?? "?"));
    }
  });

  it("are none if no subset uses a rule about clusters", () => {
    expect(explainClusterRules(specWith({ subRules: [] }), { name: "eu-1", labels: {} }, NONE_CHOSEN)).toEqual([]);
  });

  it("say what a PlacementDecision names, and with a missing one that the cluster keeps its owner", () => {
    const chosen = specWith(
      { subRules: [{ name: "a", match: [{ clustersFrom: { placementDecision: "fleet" } }, { clusters: ["eu-1"] }] }] },
      "a",
    );
    const ask = (names: readonly string[] | undefined) =>
      explainClusterRules(chosen, { name: "eu-1", labels: {} }, new Map(names && [["fleet", new Set(names)]])).map(
        ({ match, why }) => `${match}: ${why}`,
      );
    expect(ask(["eu-1"])[0]).toBe("yes: PlacementDecision fleet names eu-1");
    expect(ask([]).slice(0, 2)).toEqual(["no: PlacementDecision fleet does not name eu-1", "yes: clusters has eu-1"]);
    expect(ask(undefined)).toEqual([
      "not known: there is no PlacementDecision with the decision-key fleet",
      "not reached: the cluster keeps its owner",
      "not reached: the cluster keeps its owner",
    ]);
  });
});
