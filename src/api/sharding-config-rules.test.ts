import { describe, expect, it } from "vitest";
import { sampleShardingConfig, sampleShardingRoot, shardingProblemsOf } from "../../test/support/sharding-config.ts";
import { rootNameOf } from "./sharding-config-rules.ts";

type Fields = Readonly<Record<string, unknown>>;

const problems = (spec: Fields) => shardingProblemsOf(sampleShardingConfig(spec));
const rootProblems = (root: Fields, spec: Fields = {}) => shardingProblemsOf(sampleShardingRoot(root, spec));
const limit = (apiGroup: string, ...resources: string[]) => ({ relateResources: [{ apiGroups: [apiGroup], resources }] });

const OWNER = {
  apiVersion: "ctrlmesh.kusionstack.io/v1alpha1",
  kind: "ShardingConfig",
  name: "shop",
  uid: "u",
  controller: true,
};
const child = (spec: Fields) => ({
  ...sampleShardingConfig(spec),
  metadata: { name: "shop-1-normal", ownerReferences: [OWNER] },
});

describe("a config without root", () => {
  it("needs selector and limits", () => {
    expect(problems({ selector: undefined, limits: undefined })).toEqual([
      "spec.selector: required without root: it selects the pods of the shard",
      "spec.limits: required without root: they name the resources that the shards divide",
    ]);
    expect(problems({ selector: {}, limits: [] })).toEqual([
      "spec.limits: must not be empty",
      "spec.selector: must have at least one term: an empty selector matches everything",
    ]);
  });

  it.each([
    ["default", "is reserved for the pods that match no shard; use another name"],
    ["a---b", 'must not contain "---", which separates a lock from its subset'],
    ["shop.east", 'must be a DNS label: lower-case letters, digits and "-", with a letter or digit at both ends, at most 63'],
  ])("names a shard, so its name must not be %s", (name, message) => {
    expect(shardingProblemsOf({ ...sampleShardingConfig(), metadata: { name } })).toEqual([
      `metadata.name: "${name}": ${message}`,
    ]);
  });

  it("names its family by its lock, in a label of pods", () => {
    expect(problems({ controller: { leaderElectionName: "l".repeat(63) } })).toEqual([]);
    expect(problems({ controller: { leaderElectionName: "l".repeat(64) } })).toEqual([
      `spec.controller.leaderElectionName: "${"l".repeat(64)}": must have at most 63 characters without root: it names the family, in a label of its pods`,
    ]);
  });
});

describe("a root", () => {
  it("may have any name, since it is no shard", () => {
    for (const name of ["default", "a---b", "shop.east"]) {
      expect(shardingProblemsOf({ ...sampleShardingRoot(), metadata: { name } })).toEqual([]);
    }
  });

  it("may have limits, which have no effect, as in KusionStack's mesh", () => {
    expect(rootProblems({}, { limits: [limit("", "pods")] })).toEqual([]);
  });

  it("has a prefix with which all names of shards are DNS labels", () => {
    for (const prefix of ["a", "shop--eu", "shop-", "p".repeat(53)]) expect(rootProblems({ prefix })).toEqual([]);
    for (const prefix of ["", "-a", "shop--", "Shop", "a.b", "p".repeat(54)]) {
      expect(rootProblems({ prefix }).every((problem) => problem.startsWith("spec.root.prefix: "))).toBe(true);
      expect(rootProblems({ prefix })).not.toEqual([]);
    }
  });

  it("has a lock that leaves room for the longest name of a shard", () => {
    const named = (length: number) =>
      rootProblems({ prefix: "shop" }, { controller: { leaderElectionName: "l".repeat(length) } });
    expect(named(236)).toEqual([]);
    expect(named(237)).toEqual([
      expect.stringMatching(
        /^spec\.controller\.leaderElectionName: "l+\.\.\.": too long: .* with at most 253 characters; use at most 236 here$/,
      ),
    ]);
  });

  it("has clusters of which it divides the namespaces", () => {
    expect(rootProblems({ clustersBy: "Namespace" })).toEqual([
      "spec.root.clustersBy: Namespace needs clusterSelector or clustersFrom beside it: they say which other clusters the shards divide",
    ]);
    expect(rootProblems({ clustersBy: "Namespaces" })).toHaveLength(1);
    for (const fields of [{}, { clustersFrom: { placementDecision: "here" } }, { clusterSelector: {} }]) {
      const clustersBy = Object.keys(fields).length === 0 ? "Cluster" : "Namespace";
      expect(rootProblems({ clustersBy, ...fields })).toEqual([]);
    }
  });

  it("has a canary that selects namespaces", () => {
    expect(rootProblems({ canary: { replicas: 1 } })).toEqual([
      "spec.root.canary: selects no namespaces: set inNamespaces, inShardHash or percent",
    ]);
    for (const terms of [{ inNamespaces: ["a"] }, { inShardHash: ["7"] }, { percent: 1 }]) {
      expect(rootProblems({ canary: { replicas: 1, ...terms } })).toEqual([]);
    }
    expect(rootProblems({ canary: { inNamespace: ["a"] } })).toEqual([
      "spec.root.canary.replicas: required",
      'spec.root.canary.inNamespace: unknown field; did you mean "inNamespaces"?',
    ]);
  });

  it("leaves room for the terms that its children have in addition", () => {
    const selector = (count: number) => ({
      matchExpressions: Array.from({ length: count }, (_, index) => ({ key: `k${index}`, operator: "Exists" })),
    });
    const resourceSelector = (count: number) => [{ ...limit("", "pods"), selector: selector(count) }];
    expect(rootProblems({ resourceSelector: resourceSelector(13) }, { selector: selector(16) })).toEqual([]);
    expect(rootProblems({ resourceSelector: resourceSelector(14) })).toEqual([
      "spec.root.resourceSelector[0].selector.matchExpressions: must have at most 13 items in a root: each shard adds its own",
    ]);
    expect(problems({ selector: selector(16), limits: resourceSelector(16) })).toEqual([]);
  });

  it("has at most 32 shards, which own the 32 hashes, unless its placement is balanced", () => {
    const auto = (shardingSize: number) => ({ auto: { shardingSize, everyShardReplicas: 1 } });
    expect(rootProblems(auto(32))).toEqual([]);
    expect(rootProblems(auto(33))).toEqual([
      "spec.root.auto.shardingSize: 33: Legacy placement divides 32 hashes, so more than 32 shards cannot all own namespaces: use at most 32, or spec.root.placement Balanced",
    ]);
    expect(rootProblems({ ...auto(33), placement: "Balanced" })).toEqual([]);
  });
});

describe("resources", () => {
  it("must not be named by two entries; the message has both paths", () => {
    const limits = [limit("apps", "deployments"), limit("", "pods"), limit("*", "deployments", "jobs")];
    expect(problems({ limits })).toEqual([
      "spec.limits[2].relateResources: names a resource that spec.limits[0].relateResources names too; name each resource in one entry only",
    ]);
    expect(rootProblems({ resourceSelector: [limit("", "pods"), limit("", "*")] })).toEqual([
      "spec.root.resourceSelector[1].relateResources: names a resource that spec.root.resourceSelector[0].relateResources names too; name each resource in one entry only",
    ]);
  });

  it("may be named twice by one entry", () => {
    const relateResources = [...limit("*", "pods").relateResources, ...limit("example.com", "*").relateResources];
    expect(problems({ limits: [{ relateResources }] })).toEqual([]);
  });

  it("are bounded together", () => {
    const names = (from: number) => Array.from({ length: 64 }, (_, index) => `r${from}-${index}`);
    const apiGroups = Array.from({ length: 32 }, (_, index) => `g${index}`);
    const limits = Array.from({ length: 17 }, (_, index) => ({ relateResources: [{ apiGroups, resources: names(index) }] }));
    expect(problems({ limits })).toEqual([
      'spec.limits: lists 34816 pairs of an API group and a resource in total; at most 32768 are allowed, so use "*" for all',
    ]);
  });
});

describe("the children of a root", () => {
  it("are the objects with an owner of this kind", () => {
    expect(rootNameOf({ ownerReferences: [{ ...OWNER, kind: "StatefulSet" }, OWNER] })).toBe("shop");
    expect(rootNameOf({ ownerReferences: [{ ...OWNER, controller: false }] })).toBeUndefined();
    expect(rootNameOf({ ownerReferences: [{ ...OWNER, apiVersion: "example.com/v1" }] })).toBeUndefined();
    expect(rootNameOf(undefined)).toBeUndefined();
  });

  it("may have the computed key of a placement, which no other config may have", () => {
    const key = "ctrlmesh.kusionstack.io/shard";
    const selector = { matchExpressions: [{ key, operator: "In", values: ["shop-1-normal"] }] };
    const limits = [{ ...limit("", "pods"), selector }];
    expect(shardingProblemsOf(child({ limits }))).toEqual([]);
    expect(problems({ limits })).toEqual([
      `spec.limits[0].selector.matchExpressions[0].key: "${key}": is reserved for the children of a root: the placement of the root decides it`,
    ]);
    expect(rootProblems({ resourceSelector: limits })).toEqual([
      expect.stringMatching(/^spec\.root\.resourceSelector\[0\]\.selector\.matchExpressions\[0\]\.key: .*reserved/),
    ]);
  });

  it("may have the long lock of their root", () => {
    expect(shardingProblemsOf(child({ controller: { leaderElectionName: "l".repeat(200) } }))).toEqual([]);
  });
});

describe("labelObjects", () => {
  const MESSAGE = "labelObjects needs each group and resource by name: name them, or remove labelObjects";

  it("needs the resources by name", () => {
    expect(problems({ labelObjects: true, limits: [limit("", "pods", "*")] })).toEqual([
      `spec.limits[0].relateResources[0].resources: "*": ${MESSAGE}`,
    ]);
    expect(rootProblems({ resourceSelector: [limit("*", "pods")] }, { labelObjects: true })).toEqual([
      `spec.root.resourceSelector[0].relateResources[0].apiGroups: "*": ${MESSAGE}`,
    ]);
    expect(problems({ labelObjects: false, limits: [limit("*", "pods")] })).toEqual([]);
    expect(problems({ labelObjects: true, limits: [limit("apps", "deployments")] })).toEqual([]);
  });
});
