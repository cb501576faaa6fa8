import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NAME_SETS } from "../../../test/support/name-sets.ts";
import { type BalancedMap, balancedMap, SLOTS, slotOf } from "./balanced-map.ts";

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const moved = (before: BalancedMap, after: BalancedMap, names: readonly string[]) =>
  names.filter((name) => before[slotOf(name)] !== after[slotOf(name)]).length;

function loadsOf(map: BalancedMap, names: readonly string[]): Map<number, number> {
  const loads = new Map([...map].map((shard) => [shard, 0]));
  for (const name of names) loads.set(map[slotOf(name)] ?? 0, (loads.get(map[slotOf(name)] ?? 0) ?? 0) + 1);
  return loads;
}

/** Of the names, and of the slots. */
function largestToMean(map: BalancedMap, active: readonly number[], names: readonly string[]) {
  const slots = active.map((shard) => map.filter((each) => each === shard).length);
  return {
    names: (Math.max(...loadsOf(map, names).values()) * active.length) / names.length,
    slots: (Math.max(...slots) * active.length) / SLOTS,
  };
}

describe.each(NAME_SETS)("the Balanced map of %s", (_, names) => {
  it.each([3, 4, 5, 6, 7, 8, 9])("is even for %d shards", (count) => {
    const even = largestToMean(balancedMap(undefined, upTo(count), names), upTo(count), names);
    expect(even.names).toBeLessThanOrEqual(1.1);
    expect(even.slots).toBeLessThanOrEqual(1.05);
  });

  it.each([3, 4, 5, 6, 7, 8, 9])("is nearly even for %d shards if all but three namespaces come later", (count) => {
    const map = balancedMap(undefined, upTo(count), names.slice(0, 3));
    expect(largestToMean(map, upTo(count), names).names).toBeLessThanOrEqual(1.2);
  });

  it.each([
    [4, 5],
    [5, 4],
    [2, 3],
    [7, 8],
    [1, 9],
  ])("moves little more than it must from %d to %d shards, and stays even", (from, to) => {
    const before = balancedMap(undefined, upTo(from), names);
    const after = balancedMap(before, upTo(to), names);
    const leavers = upTo(from).slice(to);
    const joiners = upTo(to).slice(from);
    const least =
      leavers.reduce((sum, shard) => sum + (loadsOf(before, names).get(shard) ?? 0), 0) +
      joiners.length * Math.floor(names.length / to);
    expect(moved(before, after, names)).toBeLessThanOrEqual(1.2 * least);
    expect(largestToMean(after, upTo(to), names).names).toBeLessThanOrEqual(1.1);
  });
});

const activeSets = fc.array(fc.uniqueArray(fc.integer({ min: 1, max: 64 }), { minLength: 1, maxLength: 12 }), {
  minLength: 1,
  maxLength: 6,
});
const someNames = fc.array(fc.stringMatching(/^[a-z0-9-]{1,12}$/), { maxLength: 300 });

describe("any sequence of active shards", () => {
  it("gives every slot to an active shard", () => {
    fc.assert(
      fc.property(activeSets, someNames, (sets, names) => {
        let map: BalancedMap | undefined;
        for (const active of sets) {
          map = balancedMap(map, active, names);
          expect(map).toHaveLength(SLOTS);
          expect([...new Set(map)].filter((shard) => !active.includes(shard))).toEqual([]);
        }
      }),
      { numRuns: 50 },
    );
  });

  it("takes nothing from a shard that stays and has no more than its part", () => {
    fc.assert(
      fc.property(activeSets, someNames, (sets, names) => {
        let map: BalancedMap | undefined;
        for (const active of sets) {
          const before = map;
          const after = balancedMap(before, active, names);
          for (const shard of active) {
            const own = [...(before ?? [])].flatMap((each, slot) => (each === shard ? [slot] : []));
            const isWithin =
              names.filter((name) => before?.[slotOf(name)] === shard).length <= Math.ceil(names.length / active.length) &&
              own.length <= Math.ceil(SLOTS / active.length);
            if (isWithin) for (const slot of own) expect(after[slot]).toBe(shard);
          }
          map = after;
        }
      }),
      { numRuns: 50 },
    );
  });

  it("keeps 2,000 namespaces, which come and go, even over many joins and leaves", () => {
    let map: BalancedMap | undefined;
    let names: string[] = [];
    for (let step = 0; step < 40; step++) {
      names = [
        ...names.slice(names.length > 2000 ? 300 : 0),
        ...Array.from({ length: 200 }, (_, index) => `tenant-${step * 200 + index}`),
      ];
      const active = upTo(9).filter((shard) => (shard * 7 + step * step) % 5 !== 0);
      map = balancedMap(map, active, names);
      const even = largestToMean(map, active, names);
      expect(even.names).toBeLessThanOrEqual(1.05);
      expect(even.slots).toBeLessThanOrEqual(1.06);
    }
  });
});
