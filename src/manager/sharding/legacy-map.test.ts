import { describe, expect, it } from "vitest";
import { legacyBatch, legacyMap } from "./legacy-map.ts";

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const moved = (before: readonly number[], after: readonly number[]) =>
  legacyMap(before).filter((shard, hash) => shard !== legacyMap(after)[hash]).length;

describe("the Legacy map", () => {
  it("gives the batches of the original if all shards are active", () => {
    expect(upTo(3).map((shard) => legacyBatch(upTo(3), shard))).toEqual([
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
      [11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21],
      [22, 23, 24, 25, 26, 27, 28, 29, 30, 31],
    ]);
  });

  it("leaves the last shards empty for the counts for which the original does", () => {
    const counts = upTo(32).filter((count) => upTo(count).some((shard) => legacyBatch(upTo(count), shard).length === 0));
    expect(counts).toEqual([9, 10, 12, 13, 14, 15, ...upTo(31).slice(16)]);
  });

  it("moves as many buckets as the original", () => {
    expect([moved(upTo(2), upTo(3)), moved(upTo(3), upTo(4)), moved(upTo(7), upTo(8))]).toEqual([15, 17, 22]);
  });

  it("divides all hashes among the active shards, and gives the others nothing", () => {
    for (const active of [[2], [1, 3], [2, 5, 64], upTo(64)]) {
      const batches = active.map((shard) => [shard, legacyBatch(active, shard)] as const);
      expect(batches.flatMap(([, batch]) => batch)).toEqual(Array.from({ length: 32 }, (_, hash) => hash));
      for (const [shard, batch] of batches) for (const hash of batch) expect(legacyMap(active)[hash]).toBe(shard);
      expect(legacyBatch(active, 65)).toEqual([]);
    }
  });
});
