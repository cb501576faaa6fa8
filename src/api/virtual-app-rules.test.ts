import { RE2JS } from "re2js";
import { describe, expect, it, vi } from "vitest";
import { problemsOf, sampleVirtualApp } from "../../test/support/virtual-app.ts";

const regexRule = (name: string) => ({ name, match: [{ namespaceRegex: `^${name}` }] });
const subset = (name: string, ...routeRules: string[]) => ({ name, labels: { version: name }, routeRules });
const problems = (spec: Record<string, unknown>) => problemsOf(sampleVirtualApp(spec));

const deployments = [{ apiGroups: ["apps"], resources: ["deployments"] }];
const workloads = [{ apiGroups: ["*"], resources: ["deployments", "replicasets"] }];
const pods = [{ apiGroups: [""], resources: ["pods"] }];
const objects = (labels: Record<string, string>, resources: unknown) => ({ objectSelector: { matchLabels: labels }, resources });

describe("names", () => {
  it("of subsets and of rules must be unique", () => {
    const route = { subRules: [regexRule("a"), regexRule("b"), regexRule("a")] };
    expect(problems({ route, subsets: [subset("v2", "a"), subset("v2", "b")] })).toEqual([
      'spec.route.subRules[2].name: "a": is already the name of spec.route.subRules[0]',
      'spec.subsets[1].name: "v2": is already the name of spec.subsets[0]',
    ]);
  });
});

it("globalLimits name no clusters", () => {
  const globalLimits = [{ clusters: ["eu"] }, { clusterSelector: {} }, { clustersFrom: { placementDecision: "fleet" } }];
  expect(problems({ route: { globalLimits, subRules: [regexRule("canary-eu")] } })).toEqual(
    ["[0].clusters", "[1].clusterSelector", "[2].clustersFrom"].map((field) =>
      expect.stringContaining(`spec.route.globalLimits${field}: limits are about namespaces and objects`),
    ),
  );
});

describe("routeRules", () => {
  it("must exist; otherwise the message suggests the nearest rule", () => {
    const route = { subRules: [regexRule("canary-eu")] };
    expect(problems({ route, subsets: [subset("v1", "canary-eu"), subset("v2", "canary-ue")] })).toEqual([
      'spec.subsets[1].routeRules[0]: "canary-ue": no such subRule; did you mean "canary-eu"?',
    ]);
  });

  it("list the known rules if no name is near", () => {
    const route = { subRules: ["a1", "b1", "c1", "d1", "e1", "f1"].map(regexRule) };
    expect(problems({ route, subsets: [subset("v2", "something")] })).toEqual([
      'spec.subsets[0].routeRules[0]: "something": no such subRule; the names are "a1", "b1", "c1", "d1", "e1" and others',
    ]);
    expect(problems({ route: {} })).toEqual([
      'spec.subsets[0].routeRules[0]: "canary-eu": no such subRule; spec.route.subRules is empty',
    ]);
  });

  it("belong to one subset, once", () => {
    const route = { subRules: [regexRule("a")] };
    expect(problems({ route, subsets: [subset("v1", "a", "a"), subset("v2", "a")] })).toEqual([
      'spec.subsets[0].routeRules[1]: "a": is already listed in this subset, at spec.subsets[0].routeRules[0]',
      'spec.subsets[1].routeRules[0]: "a": already belongs to another subset, at spec.subsets[0].routeRules[0]; a subRule can belong to one subset only',
    ]);
  });
});

describe("lock names", () => {
  it("may be set in both fields if they are equal", () => {
    const controller = { leaderElectionName: "shop", leaderElection: { lockName: "shop" } };
    expect(problems({ configuration: { controller } })).toEqual([]);
  });

  it("must not differ between the two fields", () => {
    const controller = { leaderElectionName: "shop", leaderElection: { lockName: "stall" } };
    expect(problems({ configuration: { controller } })).toEqual([
      'spec.configuration.controller.leaderElection.lockName: "stall": differs from spec.configuration.controller.leaderElectionName "shop"; both name the same lock, so set one of them',
    ]);
  });

  it("must leave room for the longest subset", () => {
    const subsets = [subset("v2", "canary-eu")];
    const named = (length: number) => ({
      configuration: { controller: { leaderElection: { lockName: "l".repeat(length) } } },
      subsets,
    });
    expect(problems(named(248))).toEqual([]);
    expect(problems(named(249))).toEqual([
      expect.stringMatching(
        /^spec\.configuration\.controller\.leaderElection\.lockName: "l+\.\.\.": too long: .* 254 characters; at most 253 are allowed, so use at most 248 here$/,
      ),
    ]);
  });
});

describe("object selectors of a subset", () => {
  const withMatches = (...match: unknown[]) => problems({ route: { subRules: [{ name: "canary-eu", match }] } });

  it("may have one term with any operator", () => {
    expect(withMatches(objects({ tier: "gold" }, deployments))).toEqual([]);
    const objectSelector = { matchExpressions: [{ key: "tier", operator: "NotIn", values: ["a", "b"] }] };
    expect(withMatches({ objectSelector, resources: deployments })).toEqual([]);
  });

  it("must have exactly one term, since the default subset needs the opposite", () => {
    expect(withMatches(objects({ tier: "gold", region: "eu" }, deployments))).toEqual([
      'spec.route.subRules[0].match[0].objectSelector: must have exactly one term, has 2: subset "v2" uses it, so the default subset must select the opposite, and only a single term has an opposite',
    ]);
    expect(withMatches(objects({}, deployments))).toEqual([expect.stringContaining("must have exactly one term, has 0")]);
  });

  it("must not select twice among the same resource, since both selectors together have no opposite", () => {
    expect(withMatches(objects({ tier: "gold" }, deployments), objects({ region: "eu" }, workloads))).toEqual([
      'spec.route.subRules[0].match[1].objectSelector: selects among the same resources as spec.route.subRules[0].match[0].objectSelector: subset "v2" uses it, so the default subset must select the opposite of both together, and no selector can express that',
    ]);
    expect(withMatches(objects({ tier: "gold" }, deployments), objects({ region: "eu" }, pods))).toEqual([]);
  });

  it("may have any number of terms in rules without a subset and in globalLimits", () => {
    const several = objects({ tier: "gold", region: "eu" }, deployments);
    const route = { globalLimits: [several], subRules: [regexRule("canary-eu"), { name: "spare", match: [several] }] };
    expect(problems({ route })).toEqual([]);
  });
});

describe("a resource that is partitioned by label", () => {
  const subRules = (...matches: Record<string, unknown>[]) => ({
    route: {
      subRules: [
        { name: "canary-eu", match: [objects({ tier: "gold" }, deployments)] },
        { name: "by-name", match: matches },
      ],
    },
    subsets: [subset("gold", "canary-eu"), subset("v2", "by-name")],
  });

  it("must not be assigned by namespace too, by a term that lists it or a term without resources", () => {
    expect(problems(subRules({ namespaceRegex: "a", resources: workloads }))).toEqual([
      "spec.route.subRules[0].match[0].objectSelector: partitions by label a resource that spec.route.subRules[1].match[0] assigns by namespace; remove the common resources from one of the terms",
    ]);
    expect(problems(subRules({ namespaceSelector: {} }))).toEqual([
      "spec.route.subRules[0].match[0].objectSelector: partitions by label a resource that spec.route.subRules[1].match[0] assigns by namespace; that term lists no resources, so it applies to all: list its resources",
    ]);
    expect(problems(subRules({ namespaceRegex: "a", resources: [{ apiGroups: ["*"], resources: ["*"] }] }))).toHaveLength(1);
  });

  it("may exist beside resources that are assigned by namespace, and within any limit", () => {
    const spec = subRules({ namespaceRegex: "a", resources: pods });
    const globalLimits = [{ namespaceRegex: "b" }, objects({ region: "eu", zone: "a" }, deployments)];
    expect(problems({ ...spec, route: { ...spec.route, globalLimits } })).toEqual([]);
  });

  it("is partitioned only by rules that a subset uses", () => {
    const spec = subRules({ namespaceRegex: "a" });
    expect(problems({ ...spec, subsets: [subset("gold", "canary-eu")] })).toEqual([]);
  });
});

describe("the cost of validation", () => {
  let reads = 0;
  /** A list of resources that counts how often it is looked at. */
  const counted = (name: string) => [
    {
      get apiGroups() {
        reads++;
        return ["apps"];
      },
      resources: [name, `${name}-2`, `${name}-3`, `${name}-4`],
    },
  ];
  const rules = (count: number, match: (index: number) => Record<string, unknown>) =>
    Array.from({ length: count }, (_, rule) => ({
      name: `r${rule}`,
      match: Array.from({ length: 32 }, (_, term) => match(rule * 32 + term)),
    }));
  const names = (from: number, count: number) => Array.from({ length: count }, (_, index) => `r${from + index}`);
  it("grows with the matches, not with their square", () => {
    const half = (index: number) =>
      index < 1_024 ? objects({ tier: "gold" }, counted(`o${index}`)) : { namespaceRegex: "a", resources: counted(`n${index}`) };
    reads = 0;
    const route = { subRules: rules(64, half) };
    expect(problems({ route, subsets: [subset("a", ...names(0, 32)), subset("b", ...names(32, 32))] })).toEqual([]);
    expect(reads).toBeLessThan(20 * 2_048);
  });
  it("is bounded for a large number of pairs of groups and resources", () => {
    const many = { apiGroups: ["a", "b", "c", "d"], resources: Array.from({ length: 64 }, (_, index) => `r${index}`) };
    const route = { subRules: rules(8, () => ({ namespaceRegex: "(", resources: [many] })) };
    expect(problems({ route, subsets: [subset("a", "none")] })).toEqual([
      'spec.route.subRules: lists 65536 pairs of an API group and a resource in total; at most 32768 are allowed, so use "*" for all',
    ]);
  });
  it("compiles no large regular expression, and none if all together are large", () => {
    const compile = vi.spyOn(RE2JS, "compile");
    const large = { namespaceRegex: "(?:abcdefghijkl){1000}" };
    expect(problems({ route: { globalLimits: [large], subRules: [regexRule("canary-eu")] } })).toEqual([
      expect.stringMatching(
        /^spec\.route\.globalLimits\[0\]\.namespaceRegex: .*: too large: .* 1\d{4} characters; at most 4096 are allowed$/,
      ),
    ]);
    expect(compile).toHaveBeenCalledTimes(1);
    compile.mockClear();
    const route = { subRules: rules(128, () => ({ namespaceRegex: "((a{1,10}){1,10}){1,10}" })) };
    expect(problems({ route, subsets: [subset("a", "r0")] })).toEqual([
      expect.stringMatching(/^spec\.route: all namespaceRegex together, .* at most 16384 are allowed$/),
    ]);
    expect(compile).not.toHaveBeenCalled();
    compile.mockRestore();
  });
  it("is bounded by a hundred problems", () => {
    const bad = Array.from({ length: 64 }, (_, index) => subset(`s${index}`, ...names(index * 32, 32)));
    const known = Array.from({ length: 128 }, (_, index) => regexRule(`x${index}${"y".repeat(55)}`));
    const found = problems({ route: { subRules: known }, subsets: bad });
    expect(found).toHaveLength(101);
    expect(found.at(-1)).toBe("there may be more problems");
  });
});
