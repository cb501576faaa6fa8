import { describe, expect, it } from "vitest";
import { samplePlacement, sampleShardingConfig, sampleShardingRoot } from "../../../test/support/sharding-config.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { isControlledBy } from "../../kube/client/owner.ts";
import { childrenOf } from "./children.ts";
import { familiesOf, familyNameOf } from "./family.ts";

const PLACEMENT = samplePlacement({ start: 0, shards: 3, active: [1, 2, 3] });

function config(name: string, lock?: string): ShardingConfig {
  const controller = lock === undefined ? undefined : { leaderElectionName: lock };
  return { ...sampleShardingConfig({ controller }), metadata: { name, namespace: "ops" } } as unknown as ShardingConfig;
}

function root(name: string, fields: { prefix?: string; targetStatefulSet?: string; lock?: string } = {}): ShardingConfig {
  const { lock = `${name}-lock`, ...own } = { prefix: name, targetStatefulSet: name, ...fields };
  const object = sampleShardingRoot(own, { controller: { leaderElectionName: lock } });
  return { ...object, metadata: { name, namespace: "ops", uid: `uid-${name}` } } as unknown as ShardingConfig;
}

const shown = (configs: readonly ShardingConfig[]) =>
  familiesOf(configs).map((family) => [family.name, ...family.configs.map(({ metadata }) => metadata.name)]);
const problems = (...configs: readonly ShardingConfig[]) =>
  Object.fromEntries(familiesOf(configs).map((family) => [family.name, family.problems]));

describe("the families of a namespace", () => {
  it("are each root, the configs of each lock, and each config without a lock", () => {
    expect(shown([root("shop"), config("b-10", "lock"), config("alone"), config("b-2", "lock"), config("c", "other")])).toEqual([
      ["alone", "alone"],
      ["lock", "b-2", "b-10"],
      ["other", "c"],
      ["shop", "shop"],
    ]);
  });

  it("show children of a root and never count them as configs", () => {
    const shop = root("shop");
    const children = childrenOf(shop, PLACEMENT);
    const [family, ...others] = familiesOf([shop, ...children]);
    expect(others).toEqual([]);
    expect(family?.root).toBe(shop);
    expect(children.filter((child) => isControlledBy(child, shop))).toEqual(children);
    expect(family?.problems).toEqual([]);
  });

  it("do not take a config for a child that the root does not own; a child without its label is one", () => {
    const shop = root("shop");
    const [child] = childrenOf(shop, PLACEMENT);
    if (child === undefined) throw new Error("no child");
    const former = { ...shop, metadata: { ...shop.metadata, uid: "uid-2" } };
    expect(familiesOf([former, child])).toMatchObject([{ name: "shop" }]);
    expect(isControlledBy(child, former)).toBe(false);
    const plain = { ...child, metadata: { ...child.metadata, labels: {} } };
    expect(familiesOf([shop, plain])).toMatchObject([{ name: "shop" }]);
    expect(isControlledBy(plain, shop)).toBe(true);
    const owners = child.metadata.ownerReferences?.map((owner) => ({ ...owner, controller: false }));
    const owned = { ...child, metadata: { ...child.metadata, ownerReferences: owners ?? [] } };
    expect(isControlledBy(owned, shop)).toBe(false);
    // The children of a root that is gone are deleted soon: until then they are no shards of their own.
    expect(familiesOf([child])).toEqual([]);
  });

  it("take a config for a shard of its own if only its label claims a root", () => {
    const claimed = {
      ...config("mine"),
      metadata: { name: "mine", labels: { "ctrlmesh.kusionstack.io/auto-sharding-root": "shop" } },
    };
    expect(shown([root("shop"), claimed])).toEqual([
      ["mine", "mine"],
      ["shop", "shop"],
    ]);
  });

  it("are made of objects of any shape", () => {
    const odd = [{ metadata: { name: "x" } }, { metadata: {}, spec: null }] as unknown as ShardingConfig[];
    expect(familiesOf(odd).map(({ name }) => name)).toEqual(["", "x"]);
  });
});

describe("configs that are being deleted", () => {
  const leaving = (one: ShardingConfig): ShardingConfig => ({
    ...one,
    metadata: { ...one.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" },
  });

  it("leave their family to the others", () => {
    const [a, b] = [leaving(config("a", "lock")), config("b", "lock")];
    expect(familiesOf([a, b])).toMatchObject([{ name: "lock", configs: [b], leaving: [a] }]);
  });

  it("are the family if there is no other", () => {
    const both = [leaving(config("a", "lock")), leaving(config("b", "lock"))];
    expect(familiesOf(both)).toMatchObject([{ configs: both, leaving: [] }]);
  });

  it("are no longer in the way of another family, so that deleting the wrong config helps", () => {
    const wrong = leaving(config("shop-1-normal", "lock"));
    expect(problems(root("shop"), wrong, config("b", "lock"))).toEqual({ shop: [], lock: [] });
    expect(problems(root("shop"), wrong).shop).toHaveLength(1); // its pods still have the shard's name
  });
});

describe("families that are in each other's way are both refused", () => {
  it("a root and hand-written configs with its lock", () => {
    const text = '"shop" and "a", "b" name one lock: the shards of a root cannot be extended by hand';
    expect(problems(root("shop", { lock: "lock" }), config("a", "lock"), config("b", "lock"))).toEqual({
      shop: [text],
      lock: [text],
    });
  });

  it("a root and a config with the name of one of its children, itself included", () => {
    for (const name of ["shop-0-canary", "shop-1-normal", "shop-64-normal"]) {
      const text = `"${name}" is the name of a child of "shop"`;
      expect(problems(root("shop"), config(name))).toEqual({ shop: [text], [name]: [text] });
      expect(problems(root("shop"), root(name, { prefix: "web" }))).toEqual({ shop: [text], [name]: [text] });
      expect(problems(root(name, { prefix: "shop" }))).toEqual({ [name]: [`"${name}" is the name of a child of "${name}"`] });
    }
    for (const name of [
      "shop-0-normal",
      "shop-1-canary",
      "shop-65-normal",
      "shop-01-normal",
      "shop-1-normals",
      "a-shop-1-normal",
    ]) {
      expect(problems(root("shop"), config(name))).toEqual({ shop: [], [name]: [] });
    }
  });

  it("two roots of one StatefulSet, or with one prefix", () => {
    const one = '"a" and "b" divide one StatefulSet, "web"';
    expect(problems(root("a", { targetStatefulSet: "web" }), root("b", { targetStatefulSet: "web" }))).toEqual({
      a: [one],
      b: [one],
    });
    const other = '"a" and "b" name their shards alike, "web"';
    expect(problems(root("a", { prefix: "web" }), root("b", { prefix: "web" }), root("c"))).toEqual({
      a: [other],
      b: [other],
      c: [],
    });
  });

  it("two families with one name", () => {
    const text = '"a" and "shop" are two families with one name, "shop"';
    expect(familiesOf([config("a", "shop"), root("shop")]).map((family) => family.problems)).toEqual([[text], [text]]);
  });

  it("with the number of the configs if they are many, and not all problems of hundreds", () => {
    const many = Array.from({ length: 5 }, (_, index) => config(`c-${index}`, "lock"));
    expect(problems(root("shop", { lock: "lock" }), ...many).shop).toEqual([
      '"shop" and "c-0", "c-1", "c-2" and 2 more name one lock: the shards of a root cannot be extended by hand',
    ]);
    const roots = Array.from({ length: 100 }, (_, index) => root(`r-${index}`, { targetStatefulSet: "web" }));
    expect(problems(...roots)["r-0"]).toHaveLength(10);
    expect(problems(...roots)["r-99"]).toHaveLength(1);
  });

  it("with more configs than a status has room for", () => {
    const many = Array.from({ length: 66 }, (_, index) => config(`c-${index}`, "lock"));
    expect(problems(...many)).toEqual({ lock: ["66 ShardingConfigs name this lock, and a family has at most 65 shards"] });
    expect(problems(...many.slice(1))).toEqual({ lock: [] });
  });

  it("unless they have no lock in common", () => {
    const { controller: _, ...spec } = root("shop").spec;
    expect(problems({ ...root("shop"), spec }, config("a"), config("b", "lock"))).toEqual({ shop: [], a: [], lock: [] });
  });
});

const owner = { apiVersion: "ctrlmesh.kusionstack.io/v1alpha1", kind: "ShardingConfig", name: "shop", controller: true };
const lock = { controller: { leaderElectionName: "lock" } };

it.each<[string, object, object, string]>([
  ["a child after its root", { name: "shop-1-normal", ownerReferences: [owner] }, lock, "shop"],
  ["a root after itself, whatever its lock is", { name: "shop" }, { root: {}, ...lock }, "shop"],
  ["a hand-written config after its lock", { name: "a" }, lock, "lock"],
  ["a config without a lock after itself", { name: "a" }, {}, "a"],
  ["a config with an empty lock after itself", { name: "a" }, { controller: { leaderElectionName: "" } }, "a"],
  [
    "a config that another kind owns after its lock",
    { name: "a", ownerReferences: [{ ...owner, kind: "Deployment" }] },
    lock,
    "lock",
  ],
  ["a config of any shape after itself", { name: "a" }, { controller: 7 }, "a"],
])("the family of %s is named", (_, metadata, spec, name) => {
  expect(familyNameOf({ metadata, spec } as never)).toBe(name);
});
