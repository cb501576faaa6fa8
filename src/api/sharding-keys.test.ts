import { describe, expect, it } from "vitest";
import {
  canaryShardName,
  MAX_NORMAL_SHARDS,
  MAX_PREFIX_LENGTH,
  NAMESPACE,
  normalShardName,
  SHARD_HASH,
  shardHashOf,
} from "./sharding-keys.ts";

describe("shardHashOf", () => {
  it.each([
    ["default", 5],
    ["kube-system", 25],
    ["ns-canary", 12],
    ["operator-demo", 30],
    ["foo-01", 18],
    ["test-mysql", 3],
    ["", 0],
  ])("of %s is %i, as in KusionStack", (namespace, hash) => {
    expect(shardHashOf(namespace)).toBe(hash);
  });

  it("is the same for names with the same letters", () => {
    expect([shardHashOf("team-ab"), shardHashOf("team-ba")]).toEqual([23, 23]);
  });

  it("equals KusionStack's recurrence over the bytes", () => {
    for (const name of ["a", "shop-eu-17", "n".repeat(63), "ü"]) {
      const recurrence = Buffer.from(name).reduce((hash, byte) => (hash * 33 + byte) % 32, 0);
      expect(shardHashOf(name)).toBe(recurrence);
    }
  });
});

it("the keys and the names of children have KusionStack's spellings", () => {
  expect([SHARD_HASH, NAMESPACE]).toEqual(["ctrlmesh.kusionstack.io/shard-hash", "ctrlmesh.kusionstack.io/namespace"]);
  expect([canaryShardName("demo"), normalShardName("demo", 1)]).toEqual(["demo-0-canary", "demo-1-normal"]);
});

it("the longest prefix leaves room for the last shard", () => {
  expect(normalShardName("p".repeat(MAX_PREFIX_LENGTH), MAX_NORMAL_SHARDS)).toHaveLength(63);
});
