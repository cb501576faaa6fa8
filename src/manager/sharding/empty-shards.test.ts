import { expect, it } from "vitest";
import { sampleShardingRoot } from "../../../test/support/sharding-config.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { emptyLegacyShards, emptyShardsText, emptyShardsWarning } from "./empty-shards.ts";
import { legacyMap } from "./legacy-map.ts";
import { numbersUpTo } from "./membership.ts";

it("the number of shards without hashes is that of the map, for each possible number of shards", () => {
  for (const shards of numbersUpTo(64)) {
    const members = numbersUpTo(shards);
    expect([shards, emptyLegacyShards(shards)]).toEqual([shards, shards - new Set(legacyMap(members, members)).size]);
  }
  const uneven = numbersUpTo(32).filter((shards) => emptyLegacyShards(shards) > 0);
  expect(uneven).toEqual([9, 10, 12, 13, 14, 15, ...numbersUpTo(31).slice(16)]);
});

it("the text says how many shards own something", () => {
  expect(emptyShardsText(9)).toBe(
    "9 normal shards divide 32 hashes with placement Legacy, so 1 of them owns nothing: use 8 shards, or spec.root.placement Balanced",
  );
  expect(emptyShardsText(40)).toContain("so 8 of them own nothing: use 32 shards, or");
});

it("a root gets a warning if shards will own nothing, or may, because their number follows the StatefulSet", () => {
  const warningOf = (root: Readonly<Record<string, unknown>>) => {
    const { spec } = sampleShardingRoot(root) as unknown as ShardingConfig;
    return spec.root && emptyShardsWarning(spec.root, undefined);
  };
  expect(warningOf({ auto: { shardingSize: 8 } })).toBeUndefined();
  expect(warningOf({ auto: { shardingSize: 10 } })).toContain("2 of them own nothing: use 8 shards");
  expect(warningOf({ auto: { shardingSize: 10 }, placement: "Balanced" })).toBeUndefined();
  expect(warningOf({ auto: undefined })).toContain("consider Balanced");
});
