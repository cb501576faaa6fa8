import { describe, expect, it } from "vitest";
import { sampleShardingConfig, sampleShardingRoot } from "../../../test/support/sharding-config.ts";
import { formatProblem } from "../../api/problems.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { ownersOf } from "../../mesh/ownership/owners.ts";
import type { App, Surroundings } from "../apps/app.ts";
import { compileNow } from "../apps/compile/compile-now.ts";
import { comparedOwners, isSameOwner } from "../apps/namespace-owners.ts";
import { childrenOf } from "./children.ts";
import { familyNameOf } from "./family.ts";
import { judgeEdit } from "./sharding-edit.ts";
import { createShardingSource } from "./sharding-source.ts";
import { storedPlacement } from "./stored-placement.ts";

type Fields = Readonly<Record<string, unknown>>;
const PLACED = { placement: { start: 0, shards: 2, active: [1, 2] } };
const config = (name: string, spec: Fields = {}): ShardingConfig =>
  ({ ...sampleShardingConfig(spec), metadata: { name, namespace: "ops" } }) as unknown as ShardingConfig;
const ROOT = {
  ...sampleShardingRoot(),
  metadata: { name: "shop", namespace: "ops", uid: "u" },
  status: PLACED,
} as unknown as ShardingConfig;

/** Admission of an object beside those that are stored. */
function judge(before: ShardingConfig | undefined, after: ShardingConfig, stored: readonly ShardingConfig[] = []) {
  const apps: App[] = createShardingSource().appsOf(stored);
  const own = apps.find(({ ref }) => ref.name === familyNameOf(after));
  const around: Surroundings = { own, others: apps.filter((app) => app !== own) };
  const { problems, warnings } = judgeEdit(before, after, around);
  return { problems: problems.map(formatProblem), warnings };
}

function childOf(root: ShardingConfig): ShardingConfig {
  const placement = storedPlacement(root);
  const child = placement && childrenOf(root, placement)[1];
  if (child === undefined) throw new Error("no child");
  return child;
}

describe("an edit of a child", () => {
  const child = childOf(ROOT);
  const edited = { ...child, spec: { ...child.spec, paused: true } };

  it("is refused, and says where to edit", () => {
    expect(judge(child, edited, [ROOT, child]).problems).toEqual([
      "spec: is made from ShardingConfig shop, and would be repaired: edit that one",
    ]);
  });

  it("is allowed where it makes the child what its root says, as the manager does", () => {
    expect(judge(undefined, child, [ROOT])).toEqual({ problems: [], warnings: [] });
    expect(judge(edited, child, [ROOT, edited])).toEqual({ problems: [], warnings: [] });
  });

  it("is allowed by a replica that does not know the root or its placement yet", () => {
    expect(judge(child, edited).problems).toEqual([]);
    const unplaced = { ...ROOT, status: {} };
    expect(judge(child, edited, [unplaced]).problems).toEqual([]);
  });

  it("that takes its root away is refused, because it would be a shard of its own with the lock of the root", () => {
    const { ownerReferences: _, ...metadata } = child.metadata;
    expect(judge(child, { ...child, metadata }, [ROOT, child]).problems.join()).toContain("name one lock");
  });
});

it("a root whose selector names pods is warned that it leaves none out", () => {
  const key = "statefulset.kubernetes.io/pod-name";
  const rootWith = (selector: object) => {
    const spec = sampleShardingRoot({}, { selector });
    return { ...spec, metadata: { name: "shop", namespace: "ops" } } as unknown as ShardingConfig;
  };
  const named = rootWith({ matchExpressions: [{ key, operator: "In", values: ["shop-operator-0"] }] });
  expect(judge(undefined, named)).toEqual({
    problems: [],
    warnings: [
      "spec.selector: a root's selector leaves out no pod: all pods of StatefulSet shop-operator belong to the family and get the proxy, not only the named ones",
    ],
  });
  expect(judge(undefined, rootWith({ matchLabels: { app: "shop" } }))).toEqual({ problems: [], warnings: [] });
});

describe("a conflict with another family", () => {
  it("is refused where it is new, and names both", () => {
    expect(judge(undefined, config("a"), [ROOT]).problems).toEqual([
      '"shop" and "a" name one lock: the shards of a root cannot be extended by hand',
    ]);
  });

  it("that exists does not forbid another edit", () => {
    const paused = config("a", { paused: true });
    expect(judge(config("a"), paused, [ROOT, config("a")]).problems).toEqual([]);
  });

  it("does not keep a config from being deleted", () => {
    const leaving = { ...config("a"), metadata: { ...config("a").metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
    expect(judge(config("a"), leaving, [ROOT, config("a")]).problems).toEqual([]);
  });

  it("is the 66th config of a family", () => {
    const many = Array.from({ length: 65 }, (_, index) => config(`c-${index}`));
    expect(judge(undefined, config("d"), many).problems.join()).toContain("at most 65 shards");
    expect(judge(undefined, config("d"), many.slice(1)).problems).toEqual([]);
  });
});

describe("an invalid object", () => {
  it("is refused with all problems at once", () => {
    expect(judge(undefined, config("a", { onLoss: "No", paused: 1 })).problems).toHaveLength(2);
  });

  it("can be corrected step by step", () => {
    const bad = config("a", { onLoss: "No", paused: 1 });
    const better = judge(bad, config("a", { onLoss: "No" }));
    expect(better.problems).toEqual([]);
    expect(better.warnings).toEqual([expect.stringMatching(/^not corrected yet: spec\.onLoss/)]);
    expect(judge(config("a", { onLoss: "No" }), bad).problems).toHaveLength(1);
  });
});

it("what the configs of a family must have in common is a warning, so that it can be changed in one after the other", () => {
  const [limit] = config("a").spec.limits ?? [];
  const labelled = (name: string) => config(name, { limits: [{ ...limit, selector: { matchLabels: { tier: "web" } } }] });
  const stored = [config("a"), config("b")];
  const first = judge(config("a"), labelled("a"), stored);
  expect(first.problems).toEqual([]);
  expect(first.warnings).toEqual([expect.stringMatching(/^the family is refused until this is corrected: .*same labels/)]);
  expect(judge(config("b"), labelled("b"), [labelled("a"), config("b")])).toEqual({ problems: [], warnings: [] });
});

describe("a root that is legal, but probably not what is meant", () => {
  const root = (fields: Fields, spec: Fields = {}) =>
    ({ ...sampleShardingRoot(fields, spec), metadata: { name: "shop", namespace: "ops" } }) as unknown as ShardingConfig;
  const nine = root({ auto: { shardingSize: 9 } });

  it("gets a warning if shards own nothing, when it is created and when that changes, and not at other edits", () => {
    expect(judge(undefined, nine).warnings).toEqual([expect.stringContaining("so 1 of them owns nothing: use 8 shards, or")]);
    expect(judge(root({ auto: { shardingSize: 8 } }), nine).warnings).toHaveLength(1);
    expect(judge(nine, root({ auto: { shardingSize: 9 } }, { paused: true })).warnings).toEqual([]);
    expect(judge(undefined, root({ auto: { shardingSize: 8 } })).warnings).toEqual([]);
  });

  it("gets a warning for limits, which have no effect, and for keys of KusionStack's mesh", () => {
    const limits = [{ relateResources: [{ apiGroups: [""], resources: ["pods"] }] }];
    expect(judge(undefined, root({}, { limits }))).toEqual({
      problems: [],
      warnings: ["spec.limits has no effect beside root: the shards divide the resources of spec.root.resourceSelector"],
    });
    const labelled = root({});
    const labels = { "ctrlmesh.kusionstack.io/ignore-validate": "true" };
    expect(judge(undefined, { ...labelled, metadata: { ...labelled.metadata, labels } }).warnings).toEqual([
      "label ctrlmesh.kusionstack.io/ignore-validate has no effect here: every ShardingConfig is checked",
    ]);
  });
});

describe("an edit of a root", () => {
  const edited = (root: Fields, spec: Fields = {}): ShardingConfig =>
    ({ ...ROOT, spec: { ...ROOT.spec, ...spec, root: { ...ROOT.spec.root, ...root } } }) as ShardingConfig;
  const NAMES = Array.from({ length: 200 }, (_, index) => ({ name: `team-${index}`, labels: {} }));
  /** The number of namespaces that the edit moves, by its routes. */
  function moved(before: ShardingConfig, after: ShardingConfig): number | undefined {
    const [own] = createShardingSource().appsOf([before]);
    const { reroute } = judgeEdit(before, after, { own, others: [] });
    if (reroute === undefined) return undefined;
    const [old, next] = comparedOwners([compileNow(reroute.before, NAMES), compileNow(reroute.after, NAMES)]);
    return NAMES.filter(({ name }) => old?.(name).some((owner, at) => !isSameOwner(owner, next?.(name)[at]))).length;
  }

  it.each<[string, Fields]>([
    ["another prefix", { prefix: "other" }],
    ["another placement", { placement: "Balanced" }],
    ["more shards", { auto: { shardingSize: 7, everyShardReplicas: 2 } }],
    ["a canary of half of all", { canary: { replicas: 1, percent: 50 } }],
  ])("that moves many namespaces has the routes from which a warning follows: %s", (_, root) => {
    expect(moved(ROOT, edited(root))).toBeGreaterThan(60);
  });

  describe("of a root that divides the namespaces of other clusters", () => {
    const inside = { clusterSelector: {}, clustersBy: "Namespace" };
    const before = edited(inside);
    const warningsOf = (root: Fields, spec: Fields = {}, from = before) => judge(from, edited(root, spec), [from]).warnings;
    const stop = "; spec.paused: true stops it";

    it("warns if most of them move, since nobody can count them at once", () => {
      const text =
        /^may move about [5-9][0-9] % of the namespaces of other clusters to other owners; spec.paused: true stops it$/;
      expect(warningsOf({ ...inside, placement: "Balanced" })).toEqual([expect.stringMatching(text)]);
      const most = `spec.root.clustersBy: in the clusters with interception Terminate most namespaces move to other owners${stop}`;
      expect(warningsOf({ clusterSelector: {} })).toEqual([most]);
      expect(warningsOf(inside, {}, ROOT)).toEqual([most]);
      const removal = warningsOf({ ...inside, prefix: "other" });
      expect(removal).toContain("may move about 100 % of the namespaces of other clusters to other owners");
    });

    it("does not warn if few or none of them move", () => {
      expect(warningsOf({ ...inside, placement: "Balanced" }, { paused: true })).toEqual([]);
      expect(warningsOf({ clusterSelector: {}, clustersBy: "Cluster" }, {}, edited({ clusterSelector: {} }))).toEqual([]);
      expect(warningsOf({ ...inside, canary: { replicas: 1, inNamespaces: ["canary-a", "canary-b"] } })).toEqual([]);
    });
  });

  it("that moves none says so: a grace time, a paused family, a label", () => {
    expect(moved(ROOT, edited({ auto: { ...ROOT.spec.root?.auto, graceSeconds: 30 } }))).toBe(0);
    expect(moved(ROOT, edited({ prefix: "other" }, { paused: true }))).toBeUndefined();
    expect(moved(ROOT, { ...ROOT, metadata: { ...ROOT.metadata, labels: { a: "b" } } })).toBeUndefined();
  });

  it.each<[string, Fields, string]>([
    ["shop-2-normal", { auto: { shardingSize: 1, everyShardReplicas: 2 } }, "shard shop-2-normal is removed: its"],
    ["all", { prefix: "other" }, "shards shop-0-canary, shop-1-normal, shop-2-normal are removed: their"],
    ["the canary", { canary: undefined }, "shard shop-0-canary is removed: its"],
  ])("that removes or renames shards says that nothing stops the moves, even while paused: %s", (_, root, text) => {
    const warning = `${text} namespaces move at once, whatever spec.paused and spec.root.maxMovingPercent say`;
    for (const paused of [false, true]) expect(judge(ROOT, edited(root, { paused }), [ROOT]).warnings).toContain(warning);
    expect(judge(ROOT, edited({ placement: "Balanced" }), [ROOT]).warnings).toEqual([]);
  });

  it.each<[string, Fields]>([
    ["spec.root.targetStatefulSet", { targetStatefulSet: "other" }],
    ["spec.root.canary.replicas", { canary: { replicas: 2, inNamespaces: ["canary-a"] } }],
    ["spec.root.auto.everyShardReplicas", { auto: { shardingSize: 3, everyShardReplicas: 1 } }],
  ])("that gives shards other pods gets a warning: %s", (field, root) => {
    expect(judge(ROOT, edited(root), [ROOT]).warnings.slice(0, 1)).toEqual([
      `${field}: shards get other pods, so most pods change their shard and are restarted`,
    ]);
  });
});

it("an edit of a hand-written config has the routes of its whole family", () => {
  const [east, west] = [config("east"), config("west", { limits: [limitOf("west-a")] })];
  const [own] = createShardingSource().appsOf([east, west]);
  const next = config("west", { limits: [limitOf("west-a", "west-b")] });
  const { reroute } = judgeEdit(west, next, { own, others: [] });
  const names = [...(reroute === undefined ? [] : [reroute.before, reroute.after])].map((route) =>
    ownersOf(compileNow(route, [{ name: "west-b", labels: {} }]), "", "pods").ownerOf("west-b"),
  );
  expect(names).toMatchObject([{ kind: "nobody" }, { kind: "subset", subset: "west" }]);
});

function limitOf(...values: string[]) {
  const term = { key: "ctrlmesh.kusionstack.io/namespace", operator: "In", values };
  return { relateResources: [{ apiGroups: [""], resources: ["pods"] }], selector: { matchExpressions: [term] } };
}

it("an edit is refused with which a family freezes more namespaces than one app may", () => {
  const freezes = (count: number, first: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`${first}-${at}`, "restore"]));
  const [a, b] = [config("a", { frozen: freezes(40, "a") }), config("b", { frozen: freezes(24, "b") })];
  expect(judge(undefined, b, [a]).problems).toEqual([]);
  const edited = config("b", { frozen: freezes(25, "b") });
  expect(judge(b, edited, [a, b]).problems).toEqual(["the configs of this family freeze more than 64 namespaces together"]);
  const [more, less] = [config("b", { frozen: freezes(30, "b") }), edited];
  expect(judge(more, less, [a, more]).problems).toEqual([]); // a thaw, after an edit without admission
});
