import { describe, expect, it } from "vitest";
import { sampleShardingConfig, sampleShardingRoot } from "../../../test/support/sharding-config.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { NAMESPACE } from "../../api/sharding-keys.ts";
import { resourceName } from "../../kube/client/resource.ts";
import { ownersOf } from "../../mesh/ownership/owners.ts";
import { ownerText } from "../../mesh/ownership/words.ts";
import type { App } from "../apps/app.ts";
import { type ChosenClusters, NONE_CHOSEN } from "../apps/chosen-clusters.ts";
import { compileNow } from "../apps/compile/compile-now.ts";
import { createShardingSource, labelledResources } from "./sharding-source.ts";

type Fields = Readonly<Record<string, unknown>>;
const placed = (active: readonly number[]) => ({ placement: { start: 0, shards: 2, active } });
const DELETED = { deletionTimestamp: "2026-01-01T00:00:00Z" };

const config = (name: string, spec: Fields = {}, metadata: object = {}): ShardingConfig =>
  ({
    ...sampleShardingConfig({ selector: { matchLabels: { shard: name } }, ...spec }),
    metadata: { name, namespace: "ops", ...metadata },
  }) as unknown as ShardingConfig;
const root = (fields: Fields = {}, metadata: object = {}, spec: Fields = {}, status: object = placed([1, 2])): ShardingConfig =>
  ({ ...sampleShardingRoot(fields, spec), metadata: { name: "shop", namespace: "ops", uid: "u", ...metadata }, status }) as never;
const appsOf = (...configs: ShardingConfig[]) => createShardingSource().appsOf(configs);
function appOf(...configs: ShardingConfig[]): App {
  const [app, ...others] = appsOf(...configs);
  if (app === undefined || others.length > 0) throw new Error("not one app");
  return app;
}
/** The owner of pods in each namespace. */
function owners(app: App, ...names: string[]): string[] {
  if (app.spec === undefined) throw new Error("refused");
  const table = compileNow(
    app.spec.route(),
    names.map((name) => ({ name, labels: {} })),
  );
  return names.map((name) => ownerText(ownersOf(table, "", "pods").ownerOf(name), name));
}
const own = (...values: string[]) => ({
  limits: [
    {
      relateResources: [{ apiGroups: [""], resources: ["pods"] }],
      selector: { matchExpressions: [{ key: NAMESPACE, operator: "In", values }] },
    },
  ],
});

describe("the app of a root", () => {
  it("has the shards of the stored placement", () => {
    const app = appOf(root());
    expect(app).toMatchObject({ ref: { kind: "ShardingConfig", namespace: "ops", name: "shop" }, isEnding: false, problems: [] });
    expect(app.spec).toMatchObject({ subsets: ["", "shop-0-canary", "shop-1-normal", "shop-2-normal"], lockName: "shop-lock" });
    expect(owners(app, "canary-a", "default", "kube-system")).toEqual([
      'subset "shop-0-canary"',
      'subset "shop-1-normal"', // hash 5
      'subset "shop-2-normal"', // hash 25
    ]);
  });

  it("follows from the spec and the placement alone: another process makes the same table", () => {
    const table = (app: App) => JSON.stringify(app.spec?.route().rules);
    expect(table(appOf(root()))).toBe(table(appOf(root())));
    expect(owners(appOf(root({}, {}, {}, placed([2]))), "default")).toEqual(['subset "shop-2-normal"']);
  });

  it.each([{}, { placement: { start: 0 } }])("waits while its placement cannot be read: %j", (status) => {
    const { spec, pods } = appOf(root({}, {}, {}, status));
    expect(spec?.waitsFor).toContain("StatefulSet shop-operator has to exist");
    expect(pods.selects({ "statefulset.kubernetes.io/pod-name": "shop-operator-0" })).toBe(true);
  });

  it("ends when the root is deleted or disabled, and lives again when it is enabled", () => {
    expect(appOf(root({}, DELETED)).isEnding).toBe(true);
    expect(appOf(root({ disable: true })).isEnding).toBe(true);
    expect(appOf(root({ disable: false })).isEnding).toBe(false);
  });

  it("shares nothing with an equal root of another namespace", () => {
    const apps = ["ops", "dev"].flatMap((namespace) => appsOf({ ...root(), metadata: { ...root().metadata, namespace } }));
    expect(apps.map(({ ref, problems }) => [ref.namespace, ref.name, problems])).toEqual([
      ["ops", "shop", []],
      ["dev", "shop", []],
    ]);
  });

  it("gives the canary what either of its lists selects, and nothing of it to nobody", () => {
    const canary = { replicas: 1, inNamespaces: ["default"], inShardHash: ["25"] };
    expect(owners(appOf(root({ canary })), "default", "kube-system", "foo-01")).toEqual([
      'subset "shop-0-canary"',
      'subset "shop-0-canary"',
      'subset "shop-2-normal"', // hash 18
    ]);
  });

  it("gives more percent to the canary without a move between normal shards, and back exactly", () => {
    const names = Array.from({ length: 400 }, (_, index) => `team-${index}`);
    const at = (percent: number) => owners(appOf(root({ canary: { replicas: 1, percent } })), ...names);
    const [five, more] = [at(5), at(25)];
    expect(names.filter((_, index) => five[index] !== more[index] && more[index] !== 'subset "shop-0-canary"')).toEqual([]);
    expect(more.filter((owner) => owner.includes("canary")).length).toBeGreaterThan(60);
    expect(at(5)).toEqual(five);
  });
});

describe("the app of hand-written configs", () => {
  it("has one shard for each; a namespace that none selects is a gap", () => {
    const app = appOf(config("a", own("x", "y")), config("b", own("y", "z")));
    expect(app.spec?.subsets).toEqual(["", "a", "b"]);
    expect(owners(app, "x", "y", "z", "w")).toEqual([
      'subset "a"',
      'subset "a"',
      'subset "b"',
      'nobody: no shard of this family contains namespace "w"',
    ]);
  });

  it("freezes what one of its objects freezes", () => {
    const frozenBy = (...specs: Fields[]) => appOf(...specs.map((spec, at) => config(`c-${at}`, spec))).spec?.frozen;
    expect(frozenBy({}, { frozen: {} })).toBeUndefined();
    expect(frozenBy({ frozen: { b: "x" } }, {}, { frozen: { a: "y" } })).toEqual([
      { namespace: "a", reason: "y" },
      { namespace: "b", reason: "x" },
    ]);
  });

  it("is paused if one says so, restarts pods unless all agree, and refuses foreign writes unless all agree", () => {
    const options = (...specs: Fields[]) => {
      const { spec } = appOf(...specs.map((spec, at) => config(`c-${at}`, spec)));
      return [spec?.isPaused, spec?.retainsLosses, spec?.guard];
    };
    expect(options({ guard: "Enforce" }, { paused: true, onLoss: "InPlace", guard: "Warn" })).toEqual([true, true, undefined]);
    expect(options({ onLoss: "InPlace" }, { onLoss: "InPlace" })).toEqual([false, false, undefined]);
    expect(options({ guard: "Warn" }, { guard: "Warn" })).toEqual([false, true, "Warn"]);
  });

  it("lives on without a config that is being deleted, and ends with the last one", () => {
    const [a, b] = [config("a", own("x"), DELETED), config("b", own("y"))];
    const app = appOf(a, b);
    expect(app).toMatchObject({ object: b, objects: [b], leaving: [a], isEnding: false });
    expect(owners(app, "x", "y")).toEqual(['nobody: no shard of this family contains namespace "x"', 'subset "b"']);
    const last = config("b", own("y"), DELETED);
    expect(appOf(a, last)).toMatchObject({ objects: [a, last], leaving: [], isEnding: true });
  });

  it("is refused with the problems of each config, and with what the configs do not have in common", () => {
    expect(appOf(config("a"), config("b", { onLoss: "Never" }))).toMatchObject({
      spec: undefined,
      problems: [expect.stringMatching(/^b: spec\.onLoss/)],
    });
    const apart = appOf(config("a"), config("b", { selector: { matchLabels: { other: "key" } } }));
    expect(apart.problems).toEqual([expect.stringContaining("spec.selector: a, b must all restrict one key")]);
    const webhook = { certDir: "/certs", port: 9443 };
    expect(appOf(config("a", { webhook }), config("b", own("y"))).problems).toEqual([
      "spec.webhook: a and b must have the same, since one operator serves both",
    ]);
    expect(appOf(config("a", { webhook }), config("b", { ...own("y"), webhook })).spec?.webhook).toEqual(webhook);
    const [limit] = own("x").limits;
    const labelled = { limits: [{ ...limit, selector: { matchLabels: { tier: "web" } } }] };
    expect(appOf(config("a"), config("b", labelled)).problems).toEqual([
      expect.stringContaining("must select them by the same labels"),
    ]);
  });
});

const names = (config: unknown) => labelledResources(config).map(resourceName);

describe("other clusters", () => {
  const clusters = ["eu-1", "eu-2", "us-1"].map((name) => ({ name, labels: { region: name.slice(0, 2) } }));
  const share = (app: App, chosen: ChosenClusters = NONE_CHOSEN) =>
    [...(app.spec?.clusterOwners?.(clusters, chosen) ?? [])].map(([cluster, owner]) => `${cluster} ${owner}`).sort();

  it("are divided between the normal shards that have namespaces, as far as the root selects them", () => {
    const all = share(appOf(root({ clusterSelector: {} })));
    expect(new Set(all.map((each) => each.split(" ")[1]))).toEqual(new Set(["shop-1-normal", "shop-2-normal"]));
    expect(all).toHaveLength(3);
    const european = { matchLabels: { region: "eu" } };
    expect(share(appOf(root({ clusterSelector: european }, {}, {}, placed([2]))))).toEqual([
      "eu-1 shop-2-normal",
      "eu-2 shop-2-normal",
    ]);
  });

  it("are divided as far as a PlacementDecision names them, and the others of the selector are closed to every shard", () => {
    const app = (more: object) => appOf(root({ clustersFrom: { placementDecision: "fleet" }, ...more }, {}, {}, placed([2])));
    const chosen = new Map([["fleet", new Set(["eu-1", "us-1"])]]);
    expect(share(app({}), chosen)).toEqual(["eu-1 shop-2-normal", "eu-2 ", "us-1 shop-2-normal"]);
    const european = { clusterSelector: { matchLabels: { region: "eu" } } };
    expect(share(app(european), chosen)).toEqual(["eu-1 shop-2-normal", "eu-2 "]);
    expect(share(app({}), new Map([["fleet", new Set()]]))).toEqual(["eu-1 ", "eu-2 ", "us-1 "]);
  });

  it("stay shared while the PlacementDecision is missing, and no other is opened or given to a shard", () => {
    const { spec } = appOf(root({ clustersFrom: { placementDecision: "fleet" } }));
    const owned = (name: string, subset: string) => ({ name, labels: {}, owners: new Map([["shop", subset]]) });
    const all = [owned("eu-1", "shop-1-normal"), owned("eu-2", "shop-9-normal"), owned("us-1", ""), { name: "us-2", labels: {} }];
    const owners = spec?.clusterOwners?.(all, NONE_CHOSEN) ?? new Map();
    expect([owners.get("eu-1"), owners.get("eu-2")].sort()).toEqual(["shop-1-normal", "shop-2-normal"]);
    expect([owners.get("us-1"), owners.get("us-2")]).toEqual(["", ""]);
    expect([spec?.decisionKeys, all.map((each) => spec?.missingDecision?.(each, NONE_CHOSEN))]).toEqual([
      ["fleet"],
      ["fleet", "fleet", "fleet", "fleet"],
    ]);
  });

  it("are not divided unless the root asks for it", () => {
    expect(appOf(root()).spec?.clusterOwners).toBeUndefined();
    expect(appOf(config("a", own("x"))).spec?.clusterOwners).toBeUndefined();
  });
});

it("labelObjects labels namespaces and what the object names", () => {
  expect(names(sampleShardingConfig({ labelObjects: true }))).toEqual(["namespaces", "pods", "services"]);
  expect(names(sampleShardingRoot({}, { labelObjects: true }))).toEqual(["namespaces", "pods", "services"]);
});

it("without labelObjects nothing is labelled, nor by what cannot be read", () => {
  expect(names(sampleShardingConfig())).toEqual([]);
  expect(names({ spec: { labelObjects: true, limits: "all" } })).toEqual(["namespaces"]);
  expect(names(undefined)).toEqual([]);
});

it("waits for a confirmation of large moves of this generation, as a VirtualApp does", () => {
  const limited = (metadata: object) =>
    appOf(root({ maxMovingPercent: 20 }, { generation: 3, ...metadata })).spec?.maxMovingPercent;
  const confirmed = (generation: string) => ({ annotations: { "ctrlmesh.kruise.io/confirm-moves": generation } });
  expect([limited({}), limited(confirmed("2")), limited(confirmed("3"))]).toEqual([20, 20, undefined]);
});

it("lets the limit of moves keep no namespace with a lost shard, since nobody would reconcile it", () => {
  expect(appOf(root({ maxMovingPercent: 20 }, {}, {}, placed([2]))).spec?.keptSubsets).toEqual([
    "",
    "shop-0-canary",
    "shop-2-normal",
  ]);
});
