import fc from "fast-check";
import { expect, it } from "vitest";
import { shareClusters } from "./cluster-shares.ts";

const names = (prefix: string, count: number) => Array.from({ length: count }, (_, at) => `${prefix}-${at}`);

it("gives every cluster to one shard, and no shard two more than another one", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.string({ minLength: 1 }), { maxLength: 60 }),
      fc.integer({ min: 1, max: 20 }),
      (clusters, count) => {
        const shards = names("shard", count);
        const owners = shareClusters(clusters, shards);
        expect([...owners.keys()].sort()).toEqual([...clusters].sort());
        const counts = shards.map((shard) => [...owners.values()].filter((owner) => owner === shard).length);
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
      },
    ),
  );
});

it("does not depend on the order, and without shards or clusters gives nothing", () => {
  const [clusters, shards] = [names("eu", 10), names("shard", 3)];
  expect(shareClusters(clusters.toReversed(), shards.toReversed())).toEqual(shareClusters(clusters, shards));
  expect([shareClusters(clusters, []).size, shareClusters([], shards).size]).toEqual([0, 0]);
});

it("moves at most twice as many clusters as it must when a shard comes or goes", () => {
  for (let clusters = 3; clusters <= 200; clusters += 7) {
    for (let shards = 1; shards <= 10; shards++) {
      const before = shareClusters(names("cluster", clusters), names("shard", shards));
      const after = shareClusters(names("cluster", clusters), names("shard", shards + 1));
      const moved = [...before].filter(([cluster, owner]) => after.get(cluster) !== owner).length;
      const needed = Math.ceil(clusters / (shards + 1));
      expect({ clusters, shards, moved }).toEqual({
        clusters,
        shards,
        moved: expect.toSatisfy((count) => count <= 2 * needed + 2),
      });
    }
  }
});
