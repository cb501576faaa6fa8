import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ownersOf } from "../../mesh/ownership/owners.ts";
import { ownerText } from "../../mesh/ownership/words.ts";
import { compileNow } from "../apps/compile/compile-now.ts";
import { wholeClusterRoute } from "./cluster-owners.ts";
import { type SharedCluster, shareClusters } from "./cluster-shares.ts";

const names = (prefix: string, count: number) => Array.from({ length: count }, (_, at) => `${prefix}-${at}`);
const plain = (...clusters: readonly string[]): SharedCluster[] => clusters.map((name) => ({ name }));
type Owners = ReadonlyMap<string, string>;
/** The same clusters after they have got these owners. */
const owned = (clusters: readonly string[], owners: Owners, down: ReadonlySet<string> = new Set()): SharedCluster[] =>
  clusters.map((name) => ({ name, owner: owners.get(name), ...(down.has(name) && { isUnreachable: true }) }));
const movedBetween = (before: Owners, after: Owners) =>
  [...before].filter(([cluster, shard]) => after.get(cluster) !== shard).map(([cluster]) => cluster);
const isCutOff = (own: readonly SharedCluster[]) => {
  const down = own.filter(({ isUnreachable }) => isUnreachable).length;
  return down >= 2 && down > own.length / 2;
};

/** Clusters with any owners, also of shards that are gone, of which some are unreachable. */
const world = fc
  .record({ shards: fc.integer({ min: 1, max: 8 }), clusters: fc.integer({ min: 0, max: 40 }) })
  .chain(({ shards, clusters }) =>
    fc.record({
      shards: fc.constant(names("shard", shards)),
      clusters: fc.tuple(
        ...names("cluster", clusters).map((name) =>
          fc.record({
            name: fc.constant(name),
            owner: fc.option(
              fc.integer({ min: 0, max: shards }).map((at) => `shard-${at}`),
              { nil: undefined },
            ),
            isUnreachable: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, fc.constant(true as const)),
          }),
        ),
      ) as fc.Arbitrary<SharedCluster[]>,
    }),
  );

describe("shares of clusters", () => {
  it("give every cluster to one shard, and balance those that are reachable", () => {
    fc.assert(
      fc.property(world, ({ clusters, shards }) => {
        const owners = shareClusters(clusters, shards);
        expect([...owners.keys()].sort()).toEqual(clusters.map(({ name }) => name).sort());
        const sharing = shards.filter((shard) => !isCutOff(clusters.filter(({ owner }) => owner === shard)));
        const isReachable = new Set(clusters.flatMap(({ name, isUnreachable }) => (isUnreachable ? [] : [name])));
        const counts = sharing.map(
          (shard) => [...owners].filter(([name, owner]) => owner === shard && isReachable.has(name)).length,
        );
        if (counts.length > 0) expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
      }),
      { numRuns: 1_000 },
    );
  });

  it("move as few clusters as possible, and none that is unreachable or of a shard that may be cut off", () => {
    fc.assert(
      fc.property(world, ({ clusters, shards }) => {
        const owners = shareClusters(clusters, shards);
        const own = (shard: string) => clusters.filter(({ owner }) => owner === shard);
        const sharing = shards.filter((shard) => !isCutOff(own(shard)));
        const counts = sharing.map((shard) => own(shard).filter(({ isUnreachable }) => !isUnreachable).length);
        const withoutShard = clusters.filter(({ owner, isUnreachable }) => !shards.includes(owner ?? "") && !isUnreachable);
        const total = counts.reduce((sum, count) => sum + count, withoutShard.length);
        const ideal = (at: number) => Math.floor(total / sharing.length) + (at < total % sharing.length ? 1 : 0);
        const fewest = counts.sort((a, b) => b - a).reduce((sum, count, at) => sum + Math.max(0, count - ideal(at)), 0);
        const moved = clusters.filter(({ name, owner }) => shards.includes(owner ?? "") && owners.get(name) !== owner);
        expect(moved.length).toBe(fewest);
        expect(moved.filter(({ owner, isUnreachable }) => isUnreachable || !sharing.includes(owner ?? ""))).toEqual([]);
      }),
      { numRuns: 1_000 },
    );
  });

  it("stay as they are when nothing changes", () => {
    fc.assert(
      fc.property(world, ({ clusters, shards }) => {
        // If all may be cut off, new clusters go by their hash, after which some may share again.
        fc.pre(shards.some((shard) => !isCutOff(clusters.filter(({ owner }) => owner === shard))));
        const owners = shareClusters(clusters, shards);
        const again = clusters.map((cluster) => ({ ...cluster, owner: owners.get(cluster.name) }));
        expect(shareClusters(again, shards)).toEqual(owners);
      }),
      { numRuns: 1_000 },
    );
  });

  it("do not depend on the order, and are empty without shards or clusters", () => {
    const [clusters, shards] = [plain(...names("eu", 10)), names("shard", 3)];
    expect(shareClusters(clusters.toReversed(), shards.toReversed())).toEqual(shareClusters(clusters, shards));
    expect([shareClusters(clusters, []).size, shareClusters([], shards).size]).toEqual([0, 0]);
  });

  it("move only what a shard that comes gets, and what a shard that goes had", () => {
    for (let count = 3; count <= 200; count += 7) {
      for (let shards = 1; shards <= 10; shards++) {
        const clusters = names("cluster", count);
        const before = shareClusters(plain(...clusters), names("shard", shards));
        const more = shareClusters(owned(clusters, before), names("shard", shards + 1));
        expect(movedBetween(before, more).length).toBe(Math.floor(count / (shards + 1)));
        expect(new Set(movedBetween(before, more).map((each) => more.get(each)))).not.toContain("shard-0");
        const less = shareClusters(owned(clusters, more), names("shard", shards));
        expect(movedBetween(more, less).every((each) => more.get(each) === `shard-${shards}`)).toBe(true);
      }
    }
  });
});

describe("an outage of clusters", () => {
  const [clusters, shards] = [names("cluster", 12), names("shard", 3)];
  const before = shareClusters(plain(...clusters), shards);
  const of = (shard: string) => clusters.filter((name) => before.get(name) === shard);

  it("moves nothing when the others stay balanced, nor does its end", () => {
    const [down = ""] = of("shard-1");
    const during = shareClusters(owned(clusters, before, new Set([down])), shards);
    expect([during, shareClusters(owned(clusters, during), shards)]).toEqual([before, before]);
  });

  it("leaves the clusters with their shard, which gets new ones in their place", () => {
    const down = new Set(of("shard-1").slice(0, 2));
    const all = [...clusters, "new-1", "new-2"];
    const during = shareClusters(owned(all, before, down), shards);
    for (const cluster of down) expect(during.get(cluster)).toBe("shard-1");
    expect([during.get("new-1"), during.get("new-2")]).toEqual(["shard-1", "shard-1"]);
  });

  it("of a shard's own connections gives it no clusters of the others", () => {
    const during = shareClusters(owned(clusters, before, new Set(of("shard-1").slice(0, 3))), shards);
    expect(during).toEqual(before);
    const all = [...clusters, ...names("new", 6)];
    const grown = shareClusters(owned(all, before, new Set(of("shard-1").slice(0, 3))), shards);
    expect(names("new", 6).filter((each) => grown.get(each) === "shard-1")).toEqual([]);
  });

  it("of all clusters moves none", () => {
    expect(shareClusters(owned(clusters, before, new Set(clusters)), shards)).toEqual(before);
  });

  it("that comes and goes moves clusters in its first two rounds only", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 6 }),
        fc.infiniteStream(fc.boolean()),
        (count, number, isDown) => {
          const [all, sharing] = [names("cluster", count), names("shard", number)];
          const down = new Set(all.filter(() => isDown.next().value));
          let owners = shareClusters(plain(...all), sharing);
          const since = new Map<string, string>();
          const round = (at: string) => {
            const moved: string[] = [];
            for (const outage of [down, new Set<string>()]) {
              const now = owned(all, owners, outage).map((each) => ({ ...each, reachableSince: since.get(each.name) }));
              const next = shareClusters(now, sharing);
              moved.push(...movedBetween(owners, next));
              owners = next;
              for (const name of down) since.set(name, at);
            }
            return moved;
          };
          round("2026-01-01T00:00:00Z");
          round("2026-01-02T00:00:00Z");
          expect(round("2026-01-03T00:00:00Z")).toEqual([]);
          expect(round("2026-01-04T00:00:00Z")).toEqual([]);
        },
      ),
      { numRuns: 500 },
    );
  });
});

it("a shard owns all namespaces of a cluster whose namespaces are divided, and what is in none", () => {
  const owners = (owner: string) => {
    const { ownerOf } = ownersOf(compileNow(wholeClusterRoute(owner), [{ name: "a", labels: {} }]), "apps", "deployments");
    return ["a", ""].map((place) => ownerText(ownerOf(place)));
  };
  expect(owners("shop-0")).toEqual(['subset "shop-0"', 'subset "shop-0"']);
  expect(owners("")).toEqual(["the default subset", "the default subset"]);
});
