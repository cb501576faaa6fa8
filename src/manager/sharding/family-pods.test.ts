import { describe, expect, it } from "vitest";
import { sampleShardingConfig, sampleShardingRoot } from "../../../test/support/sharding-config.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { familiesOf } from "./family.ts";
import { familyPods } from "./family-pods.ts";
import { shardsOfConfigs, shardsOfRoot } from "./shards.ts";

const PLACEMENT = { start: 3, shards: 3, active: [1, 2], away: new Map(), map: undefined };
const POD_NAME = "statefulset.kubernetes.io/pod-name";
const pod = (name: string) => ({ [POD_NAME]: name });

function podsOfRoot(spec: Readonly<Record<string, unknown>> = {}) {
  const root = sampleShardingRoot({}, spec) as unknown as ShardingConfig;
  const [family] = familiesOf([root]);
  if (family === undefined) throw new Error("no family");
  return familyPods(family, shardsOfRoot(root, PLACEMENT).shards);
}

describe("the pods of a root", () => {
  it("are those of its StatefulSet, also those that no shard has yet", () => {
    const { selects } = podsOfRoot();
    const names = ["shop-operator-0", "shop-operator-99", "shop-operator", "shop-operator-x", "other-0"];
    expect(names.map((name) => selects(pod(name)))).toEqual([true, true, false, false, false]);
    expect([selects(undefined), selects({})]).toEqual([false, false]);
  });

  it("belong to the canary first and then to the shards, by ordinals from the StatefulSet's start; all others stand by", () => {
    const { subsetOf } = podsOfRoot();
    const shardOf = (ordinal: number) => subsetOf(pod(`shop-operator-${ordinal}`));
    expect([0, 2, 3, 4, 5, 6, 8, 9, 10].map(shardOf)).toEqual([
      ...["", "", "shop-0-canary", "shop-1-normal", "shop-1-normal", "shop-2-normal"],
      ...["shop-3-normal", "shop-3-normal", ""],
    ]);
  });

  it("are narrowed by the selector of the root", () => {
    const { selects, selector } = podsOfRoot({ selector: { matchLabels: { app: "shop" } } });
    expect(selector).toEqual({ matchLabels: { app: "shop" } });
    expect(selects({ ...pod("shop-operator-3"), app: "shop" })).toBe(true);
    expect(selects(pod("shop-operator-3"))).toBe(false);
  });

  it("all stand by while the shards are not known", () => {
    const [family] = familiesOf([sampleShardingRoot() as unknown as ShardingConfig]);
    expect(family && familyPods(family, []).subsetOf(pod("shop-operator-0"))).toBe("");
  });
});

it("the pods of hand-written configs belong to the first config that selects them, and the webhook's selector matches them all", () => {
  const config = (name: string, values: string[]) => {
    const selector = { matchExpressions: [{ key: "shard", operator: "In", values }] };
    return { ...sampleShardingConfig({ selector }), metadata: { name, namespace: "ops" } } as unknown as ShardingConfig;
  };
  const configs = [config("b", ["y", "z"]), config("a", ["x", "y"])];
  const [family] = familiesOf(configs);
  if (family === undefined) throw new Error("no family");
  const { name, selector, selects, subsetOf } = familyPods(family, shardsOfConfigs(configs).shards);
  expect(name).toBe("shop-lock");
  expect(["x", "y", "z", "other"].map((shard) => [selects({ shard }), subsetOf({ shard })])).toEqual([
    [true, "a"],
    [true, "a"],
    [true, "b"],
    [false, ""],
  ]);
  expect(selector).toEqual({ matchExpressions: [{ key: "shard", operator: "In", values: ["x", "y", "z"] }] });
});
