import { describe, expect, it } from "vitest";
import { matchLimitSelectorSchema } from "./match-limit-selector.ts";
import { formatProblem, validate } from "./problems.ts";

const problems = (selector: unknown) => {
  const result = validate(matchLimitSelectorSchema, selector);
  return result.ok ? [] : result.problems.map(formatProblem);
};
const resources = [{ apiGroups: ["apps"], resources: ["deployments"] }];
const ONE_OF =
  "exactly one of namespaceSelector, objectSelector, namespaceRegex, clusters, clusterSelector and clustersFrom must be set";

describe("match limit selector", () => {
  it("accepts each of the three selectors alone", () => {
    expect(problems({ namespaceSelector: {} })).toEqual([]);
    expect(problems({ namespaceRegex: "canary" })).toEqual([]);
    expect(problems({ objectSelector: { matchLabels: { a: "b" } }, resources })).toEqual([]);
  });

  it("refuses zero or two selectors, and names the selectors", () => {
    expect(problems({ resources })).toEqual([`${ONE_OF}; none is set`]);
    expect(problems({ namespaceSelector: {}, namespaceRegex: "a" })).toEqual([
      `${ONE_OF}; namespaceSelector and namespaceRegex are set`,
    ]);
  });

  it("accepts namespaces and resources beside clusters, which limit the rule inside them", () => {
    expect(problems({ clusters: ["eu-1"], namespaceSelector: {} })).toEqual([]);
    expect(problems({ clusterSelector: {}, namespaceRegex: "^a", resources })).toEqual([]);
    expect(problems({ clusters: ["eu-1"], resources })).toEqual([]);
  });

  it.each<[string, object]>([
    ["clusters and clusterSelector", { clusters: ["eu-1"], clusterSelector: {} }],
    ["namespaceSelector and namespaceRegex and clusters", { clusters: ["eu-1"], namespaceSelector: {}, namespaceRegex: "^a" }],
    ["objectSelector and clusterSelector", { clusterSelector: {}, objectSelector: { matchLabels: { a: "b" } }, resources }],
  ])("refuses %s in one term", (fields, term) => {
    expect(problems(term)).toEqual([
      `at most one of clusters, clusterSelector and clustersFrom may be set, and beside it only resources and one of namespaceSelector and namespaceRegex; ${fields} are set`,
    ]);
  });

  it("reports two selectors even if a field is unknown or has the wrong type", () => {
    expect(problems({ namespaceRegexp: "a", namespaceSelector: 5, objectSelector: {} })).toEqual([
      "namespaceSelector: 5: must be an object, not a number",
      'namespaceRegexp: unknown field; did you mean "namespaceRegex"?',
      `${ONE_OF}; namespaceSelector and objectSelector are set`,
      "resources: required: objectSelector needs resources, which list the kinds of the objects",
    ]);
  });

  it("requires resources with an objectSelector", () => {
    expect(problems({ objectSelector: {}, resources: [] })).toEqual([
      "resources: required: objectSelector needs resources, which list the kinds of the objects",
    ]);
  });

  it.each(["(", "^canary-(?!eu)", "(?<=a)b", "\\1", "a{1001}", "*"])(
    "refuses the expression %s, which RE2 does not have",
    (pattern) => {
      expect(problems({ namespaceRegex: pattern })).toEqual([expect.stringContaining("does not compile as RE2")]);
    },
  );

  it.each(["^canary.*", "(?i)eu", "(?P<x>a)", "\\pL", "[[:alpha:]]"])("accepts the expression %s, which is RE2", (pattern) => {
    expect(problems({ namespaceRegex: pattern })).toEqual([]);
  });

  it("refuses an empty expression, which would match every namespace", () => {
    expect(problems({ namespaceRegex: "" })).toEqual(['namespaceRegex: "": must not be empty']);
  });

  it("accepts clustersFrom alone, with a key that can be the value of a label", () => {
    expect(problems({ clustersFrom: { placementDecision: "fleet.eu" } })).toEqual([]);
    expect(problems({ clustersFrom: { placementDecision: "" } })).toEqual([
      'clustersFrom.placementDecision: "": must not be empty',
    ]);
    expect(problems({ clustersFrom: { placementDecision: "a b" } })).toEqual([
      expect.stringContaining('clustersFrom.placementDecision: "a b": must be a label value'),
    ]);
    expect(problems({ clustersFrom: {} })).toEqual([expect.stringContaining("clustersFrom.placementDecision: required")]);
    expect(problems({ clustersFrom: { placementDecision: "a", namespace: "b" } })).toEqual([
      expect.stringContaining("clustersFrom.namespace: unknown field"),
    ]);
    expect(problems({ clustersFrom: { placementDecision: "a" }, clusters: ["b"] })).toEqual([
      expect.stringContaining("clusters and clustersFrom are set"),
    ]);
    expect(problems({ clustersFrom: { placementDecision: "a" }, namespaceRegex: "^a", resources })).toEqual([]);
  });
});
