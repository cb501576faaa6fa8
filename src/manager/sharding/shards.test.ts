import { describe, expect, it } from "vitest";
import { samplePlacement, sampleShardingConfig, sampleShardingRoot } from "../../../test/support/sharding-config.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { compareNames, shardsOfConfigs, shardsOfRoot } from "./shards.ts";

const named = (name: string) =>
  ({ ...sampleShardingConfig(), metadata: { name, namespace: "ops" } }) as unknown as ShardingConfig;

describe("the shards of hand-written configs", () => {
  it("are in the order of their names, in which numbers count as numbers", () => {
    const { shards, home } = shardsOfConfigs(["shop-10", "shop-2", "shop", "a"].map(named));
    expect(shards.map(({ name }) => name)).toEqual(["a", "shop", "shop-2", "shop-10"]);
    expect(home).toBeUndefined();
  });

  it("have the pods of their selectors, and origins that name the config", () => {
    const [shard] = shardsOfConfigs([named("shop-east")]).shards;
    expect(shard?.pods).toEqual({ matchLabels: { shard: "east" } });
    expect(shard?.rules.map(({ origin }) => origin)).toEqual(["shop-east: spec.limits[0]"]);
  });
});

describe("the shards of a root", () => {
  const placement = samplePlacement({ start: 0, shards: 3, active: [2, 3] });

  it("are its children, with origins in the root", () => {
    const { shards, home, shardOf } = shardsOfRoot(sampleShardingRoot() as unknown as ShardingConfig, placement);
    expect(shards.map(({ name }) => name)).toEqual(["shop-0-canary", "shop-1-normal", "shop-2-normal", "shop-3-normal"]);
    expect(shards.flatMap(({ rules }) => rules.map(({ origin }) => origin))[3]).toBe("spec.root.resourceSelector[0]");
    expect(home).toBe("shop-2-normal");
    expect(["canary-a", "default", "kube-system"].map((name) => shardOf?.(name))).toEqual([
      "shop-0-canary",
      "shop-2-normal",
      "shop-3-normal",
    ]);
  });
});

describe("the order of names", () => {
  it("is the same from whichever side", () => {
    expect(compareNames("a-2", "a-10")).toBeLessThan(0);
    expect(compareNames("a-10", "a-2")).toBeGreaterThan(0);
    expect(compareNames("a-02", "a-2")).toBeLessThan(0);
    expect(compareNames("a-2", "a-02")).toBeGreaterThan(0);
    expect(compareNames("a", "a")).toBe(0);
  });
});
