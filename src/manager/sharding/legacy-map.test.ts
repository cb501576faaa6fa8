import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { legacyMap } from "./legacy-map.ts";

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const batchesOf = (members: readonly number[], active: readonly number[] = members) => {
  const map = legacyMap(members, active);
  return members.map((shard) => map.flatMap((each, hash) => (each === shard ? [hash] : [])));
};
const moved = (before: readonly number[], after: readonly number[]) =>
  legacyMap(before, before).filter((shard, hash) => shard !== legacyMap(after, after)[hash]).length;

describe("the Legacy map", () => {
  it("gives the batches of the original if all shards are active", () => {
    expect(batchesOf(upTo(3))).toEqual([
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
      [11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21],
      [22, 23, 24, 25, 26, 27, 28, 29, 30, 31],
    ]);
  });

  it("leaves the last shards empty for the counts for which the original does", () => {
    const counts = upTo(32).filter((count) => batchesOf(upTo(count)).some((batch) => batch.length === 0));
    expect(counts).toEqual([9, 10, 12, 13, 14, 15, ...upTo(31).slice(16)]);
  });

  it("moves as many hashes as the original when a shard joins", () => {
    expect([moved(upTo(2), upTo(3)), moved(upTo(3), upTo(4)), moved(upTo(7), upTo(8))]).toEqual([15, 17, 22]);
  });

  it.each([8, 16, 32])("of %d shards moves the hashes of a lost one and no others", (count) => {
    const before = legacyMap(upTo(count), upTo(count));
    for (const lost of upTo(count)) {
      const active = upTo(count).filter((shard) => shard !== lost);
      const after = legacyMap(upTo(count), active);
      expect(after.flatMap((shard, hash) => (shard === before[hash] ? [] : [before[hash]]))).toEqual(
        before.filter((shard) => shard === lost),
      );
      expect(after).not.toContain(lost);
    }
  });

  it("never moves a hash from one active shard to another while shards are lost and return", () => {
    const shardLists = fc.array(fc.uniqueArray(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), {
      minLength: 2,
      maxLength: 6,
    });
    fc.assert(
      fc.property(shardLists, (lists) => {
        const members = [...new Set(lists.flat())].sort((a, b) => a - b);
        for (const [at, active] of lists.entries()) {
          const before = lists[at - 1];
          if (before === undefined) continue;
          const [old, now] = [legacyMap(members, before), legacyMap(members, active)];
          const exchanged = now.filter((shard, hash) => {
            const previous = old[hash] ?? 0;
            return shard !== previous && active.includes(previous) && before.includes(shard);
          });
          expect(exchanged).toEqual([]);
          expect(now.filter((shard) => !active.includes(shard))).toEqual([]);
        }
      }),
    );
  });
});
