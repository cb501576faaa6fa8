import { expect, it } from "vitest";
import {
  canaryShardName,
  MAX_NORMAL_SHARDS,
  MAX_PREFIX_LENGTH,
  NAMESPACE,
  normalShardName,
  SHARD_HASH,
} from "./sharding-keys.ts";

it("the keys and the names of children have KusionStack's spellings", () => {
  expect([SHARD_HASH, NAMESPACE]).toEqual(["ctrlmesh.kusionstack.io/shard-hash", "ctrlmesh.kusionstack.io/namespace"]);
  expect([canaryShardName("demo"), normalShardName("demo", 1)]).toEqual(["demo-0-canary", "demo-1-normal"]);
});

it("the longest prefix leaves room for the last shard", () => {
  expect(normalShardName("p".repeat(MAX_PREFIX_LENGTH), MAX_NORMAL_SHARDS)).toHaveLength(63);
});
