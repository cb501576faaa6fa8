import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NAME_SETS } from "../../../test/support/name-sets.ts";
import { balancedMap, countNamespaces, SLOTS, type SlotMap, slotOf } from "./balanced-map.ts";

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const teams = (count: number) => Array.from({ length: count }, (_, index) => `team-${index}`);
const shardOf = (map: SlotMap, name: string) => map[slotOf(name)] ?? 0;
const movedOf = (before: SlotMap, after: SlotMap, names: readonly string[]) =>
  names.filter((name) => shardOf(before, name) !== shardOf(after, name));

const mapFor = (previous: SlotMap | undefined, active: readonly number[], names: readonly string[]) =>
  balancedMap(previous, active, countNamespaces(names));

/** The namespaces of each active shard. */
function loadsOf(map: SlotMap, active: readonly number[], names: readonly string[]): Map<number, number> {
  const loads = new Map(active.map((shard) => [shard, 0]));
  for (const name of names) loads.set(shardOf(map, name), (loads.get(shardOf(map, name)) ?? 0) + 1);
  return loads;
}

/** The namespaces in the fullest slot. */
function fullestSlot(names: readonly string[]): number {
  const counts = new Map<number, number>();
  for (const name of names) counts.set(slotOf(name), (counts.get(slotOf(name)) ?? 0) + 1);
  return Math.max(0, ...counts.values());
}

/** The fewest namespaces that must move for parts that differ by at most 1. */
function fewestMoves(before: SlotMap, active: readonly number[], names: readonly string[]): number {
  const kept = loadsOf(before, active, names);
  const loads = active.map((shard) => kept.get(shard) ?? 0).sort((a, b) => b - a);
  const [part, larger] = [Math.floor(names.length / active.length), names.length % active.length];
  const stay = loads.reduce((sum, load, at) => sum + Math.min(load, part + (at < larger ? 1 : 0)), 0);
  return names.length - stay;
}

function largestToMean(map: SlotMap, active: readonly number[], names: readonly string[]) {
  const slots = active.map((shard) => map.filter((each) => each === shard).length);
  return {
    names: (Math.max(...loadsOf(map, active, names).values()) * active.length) / names.length,
    slots: (Math.max(...slots) * active.length) / SLOTS,
  };
}

describe.each(NAME_SETS)("the Balanced map of %s", (_, names) => {
  it.each([3, 4, 5, 6, 7, 8, 9])("is even for %d shards", (count) => {
    const even = largestToMean(mapFor(undefined, upTo(count), names), upTo(count), names);
    expect(even.names).toBeLessThanOrEqual(1.05);
    expect(even.slots).toBeLessThanOrEqual(1.05);
  });

  it.each([3, 4, 5, 6, 7, 8, 9])("is nearly even for %d shards if all but three namespaces come later", (count) => {
    const map = mapFor(undefined, upTo(count), names.slice(0, 3));
    expect(largestToMean(map, upTo(count), names).names).toBeLessThanOrEqual(1.2);
  });

  it.each([
    [4, 5],
    [5, 4],
    [2, 3],
    [7, 8],
    [1, 9],
  ])("moves no more than it must from %d to %d shards, and stays even", (from, to) => {
    const before = mapFor(undefined, upTo(from), names);
    const after = mapFor(before, upTo(to), names);
    const most = fewestMoves(before, upTo(to), names) + fullestSlot(names);
    expect(movedOf(before, after, names).length).toBeLessThanOrEqual(most);
    expect(largestToMean(after, upTo(to), names).names).toBeLessThanOrEqual(1.1);
  });
});

describe("a shard that joins", () => {
  it.each([
    { names: 20, from: 8, gets: 2 },
    { names: 100, from: 8, gets: 11 },
    { names: 100, from: 10, gets: 9 },
    { names: 200, from: 12, gets: 15 },
    { names: 1000, from: 30, gets: 32 },
    { names: 1000, from: 63, gets: 15 },
  ])("gets $gets of $names namespaces beside $from others", ({ names, from, gets }) => {
    const all = teams(names);
    const before = mapFor(undefined, upTo(from), all);
    const after = mapFor(before, upTo(from + 1), all);
    expect(loadsOf(after, upTo(from + 1), all).get(from + 1)).toBe(gets);
    expect(movedOf(before, after, all)).toHaveLength(gets);
  });

  it("gets its part at each step from 1 to 64 shards", () => {
    const all = teams(1000);
    let map = mapFor(undefined, [1], all);
    for (let count = 2; count <= 64; count++) {
      map = mapFor(map, upTo(count), all);
      const loads = [...loadsOf(map, upTo(count), all).values()];
      expect(Math.min(...loads)).toBeGreaterThanOrEqual(Math.floor(1000 / count) - fullestSlot(all));
      expect(loads.at(-1)).toBeGreaterThanOrEqual((0.9 * 1000) / count - 1);
    }
  });

  it.each([50, 64, 80, 100])("gets a namespace of %d wherever a shard with two could give one", (count) => {
    const all = teams(count);
    let map = mapFor(undefined, [1], all);
    for (let shards = 2; shards <= Math.min(64, count); shards++) {
      map = mapFor(map, upTo(shards), all);
      const loads = loadsOf(map, upTo(shards), all);
      const slots = new Map(
        [...loads.keys()].map((shard) => [shard, new Set(all.filter((name) => shardOf(map, name) === shard).map(slotOf))]),
      );
      const canGive = [...loads].some(([shard, load]) => load > 1 && (slots.get(shard)?.size ?? 0) > 1);
      if ([...loads.values()].includes(0)) expect([shards, canGive]).toEqual([shards, false]);
    }
  });

  it("takes namespaces from few others if each slot has many", () => {
    const all = teams(10_000);
    const before = mapFor(undefined, upTo(63), all);
    const after = mapFor(before, upTo(64), all);
    expect(loadsOf(after, upTo(64), all).get(64)).toBeGreaterThanOrEqual(150);
    expect(new Set(movedOf(before, after, all).map((name) => shardOf(before, name))).size).toBeLessThanOrEqual(20);
  });
});

const activeSets = fc.array(fc.uniqueArray(fc.integer({ min: 1, max: 64 }), { minLength: 1, maxLength: 64 }), {
  minLength: 1,
  maxLength: 6,
});
const someNames = fc.oneof(
  fc.array(fc.stringMatching(/^[a-z0-9-]{1,12}$/), { maxLength: 300 }).map((names) => [...new Set(names)]),
  fc.integer({ min: 0, max: 3000 }).map(teams),
);

describe("any sequence of active shards", () => {
  /** Calls check for each map of random sequences of active shards, with the map before it. */
  function forEachStep(
    check: (after: SlotMap, active: readonly number[], names: readonly string[], before: SlotMap | undefined) => void,
  ) {
    fc.assert(
      fc.property(activeSets, someNames, fc.integer({ min: 0, max: 100 }), (sets, names, growth) => {
        let map: SlotMap | undefined;
        let all = names;
        for (const active of sets) {
          const after = mapFor(map, active, all);
          check(after, active, all, map);
          map = after;
          all = [...new Set([...all, ...teams(growth).map((name) => `later-${all.length}-${name}`)])];
        }
      }),
      { numRuns: 60 },
    );
  }

  it("gives every slot to an active shard", () => {
    forEachStep((map, active) => {
      expect(map).toHaveLength(SLOTS);
      expect([...new Set(map)].filter((shard) => !active.includes(shard))).toEqual([]);
    });
  });

  it("gives every shard its part, less and more by at most the fullest slot", () => {
    forEachStep((map, active, names) => {
      const loads = [...loadsOf(map, active, names).values()];
      const [part, slot] = [names.length / active.length, fullestSlot(names)];
      expect(Math.min(...loads)).toBeGreaterThanOrEqual(Math.floor(part) - slot);
      expect(Math.max(...loads)).toBeLessThanOrEqual(Math.ceil(part) + slot);
    });
  });

  it("moves at most what it must, and one slot for each shard that gains", () => {
    forEachStep((after, active, names, before) => {
      if (before === undefined) return;
      const moved = movedOf(before, after, names);
      const gaining = new Set(moved.map((name) => shardOf(after, name))).size;
      expect(moved.length).toBeLessThanOrEqual(fewestMoves(before, active, names) + gaining * fullestSlot(names));
    });
  });

  it("never takes from a shard and gives to it at once", () => {
    forEachStep((after, active, names, before) => {
      if (before === undefined) return;
      const moved = movedOf(before, after, names);
      const gaining = new Set(moved.map((name) => shardOf(after, name)));
      const losing = new Set(moved.map((name) => shardOf(before, name)));
      expect(active.filter((shard) => gaining.has(shard) && losing.has(shard))).toEqual([]);
    });
  });

  it("keeps 2,000 namespaces, which come and go, even over many joins and leaves", () => {
    let map: SlotMap | undefined;
    let names: string[] = [];
    for (let step = 0; step < 40; step++) {
      names = [
        ...names.slice(names.length > 2000 ? 300 : 0),
        ...Array.from({ length: 200 }, (_, index) => `tenant-${step * 200 + index}`),
      ];
      const active = upTo(9).filter((shard) => (shard * 7 + step * step) % 5 !== 0);
      map = mapFor(map, active, names);
      const even = largestToMean(map, active, names);
      expect(even.names).toBeLessThanOrEqual(1.05);
      expect(even.slots).toBeLessThanOrEqual(1.1);
    }
  });
});
