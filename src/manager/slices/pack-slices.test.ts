import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_PLACES } from "../../api/ownership-slice.ts";
import { type Packing, packSlices, type Slice } from "./pack-slices.ts";
import type { Ownership } from "./place-ownership.ts";

const NOON = "2026-11-27T12:00:00Z";
const LATER = "2026-11-27T12:00:10Z";
const A: Ownership = { state: "Owned", owners: [{ subset: "a" }] };
const B: Ownership = { state: "Owned", owners: [{ subset: "b" }] };
const TO_B: Ownership = { state: "Moving", owners: [{ subset: "b" }], from: ["a"] };
const FENCED_A: Ownership = { state: "Fenced", owners: [{ subset: "a" }] };
const NOBODY: Ownership = { state: "Unowned" };

const names = (count: number, prefix = "ns") => Array.from({ length: count }, (_, at) => `${prefix}-${at}`);
const owned = (places: readonly string[], by: Ownership = A) => new Map(places.map((place) => [place, by]));
const nextName = (taken: ReadonlySet<string>) => {
  let at = 0;
  while (taken.has(`s-${at}`)) at++;
  return `s-${at}`;
};
const pack = (previous: readonly Slice[], ownership: ReadonlyMap<string, Ownership>, now = NOON) =>
  packSlices(previous, ownership, now, nextName);
const apply = (previous: readonly Slice[], { written, deleted }: Packing): Slice[] => {
  const next = new Map(previous.map((slice) => [slice.name, slice]));
  for (const slice of written) next.set(slice.name, slice);
  for (const name of deleted) next.delete(name);
  return [...next.values()];
};
const placesOf = ({ entries }: Slice) => entries.flatMap(({ places }) => places);
const sizes = (slices: readonly Slice[]) => slices.map((slice) => placesOf(slice).length);
const sinceOf = (slices: readonly Slice[], place: string) =>
  slices.flatMap(({ entries }) => entries).find(({ places }) => places.includes(place))?.ownership.since;

describe("the slices of an app", () => {
  it("are as few as possible at first, with places of one ownership in one entry", () => {
    const { written, deleted } = pack([], owned(names(2_001)));
    expect([sizes(written), deleted]).toEqual([[1_000, 1_000, 1], []]);
    expect(written.map(({ entries }) => entries.length)).toEqual([1, 1, 1]);
  });

  it("stay as they are if nothing has changed, however late it is", () => {
    const first = apply([], pack([], owned(names(2_500))));
    expect(pack(first, owned(names(2_500)), LATER)).toEqual({ written: [], deleted: [] });
  });

  it("are written alone where a place moves, and only its time changes", () => {
    const first = apply([], pack([], owned(names(2_500))));
    const { written, deleted } = pack(first, owned(names(2_500)).set("ns-1500", TO_B), LATER);
    expect([written.map(({ name }) => name), deleted]).toEqual([["s-1"], []]);
    const next = apply(first, { written, deleted });
    expect([sinceOf(next, "ns-1500"), sinceOf(next, "ns-1501")]).toEqual([LATER, NOON]);
    expect(sizes(next)).toEqual([1_000, 1_000, 500]);
  });

  it("take a new place where there is room, and get a further slice where there is none", () => {
    const first = apply([], pack([], owned(names(1_500))));
    expect(pack(first, owned([...names(1_500), "new"])).written.map(({ name }) => name)).toEqual(["s-1"]);
    const full = apply([], pack([], owned(names(1_000))));
    expect(pack(full, owned([...names(1_000), "new"])).written.map(({ name }) => name)).toEqual(["s-1"]);
  });

  it("become one when two fit into one, and none when no place is left", () => {
    const first = apply([], pack([], owned(names(1_500))));
    const { written, deleted } = pack(first, owned(names(900)));
    expect([sizes(written), deleted]).toEqual([[900], ["s-1"]]);
    expect(pack(first, new Map())).toEqual({ written: [], deleted: ["s-0", "s-1"] });
  });

  it("lose the places that another program has written twice, or beyond the bound", () => {
    const entry = (places: readonly string[]) => ({ ownership: { ...A, since: NOON }, places });
    const odd: Slice[] = [
      { name: "s-0", entries: [entry(["a"]), entry(["a", "b"])] },
      { name: "s-1", entries: [entry(["b", "gone"])] },
    ];
    const next = apply(odd, pack(odd, owned(["a", "b"])));
    expect(next.flatMap(placesOf)).toEqual(["a", "b"]);
    const large: Slice[] = [{ name: "s-0", entries: [entry(names(1_200))] }];
    expect(sizes(apply(large, pack(large, owned(names(1_200)))))).toEqual([1_000, 200]);
  });
});

describe("since", () => {
  const sinceAfter = (was: Ownership, is: Ownership) => {
    const first = apply([], pack([], owned(["p"], was)));
    return sinceOf(apply(first, pack(first, owned(["p"], is), LATER)), "p");
  };

  it.each([
    ["begins anew when the owner changes", A, B, LATER],
    ["begins anew when a move begins", A, TO_B, LATER],
    ["begins anew when a move ends", TO_B, B, LATER],
    ["begins anew when nobody owns the place any more", A, NOBODY, LATER],
    ["goes on while a new leader does not know the pods yet", A, FENCED_A, NOON],
    ["goes on when the leader knows them", FENCED_A, A, NOON],
    ["goes on when more pods are known that may still write", TO_B, { ...TO_B, from: ["a", "c"] }, NOON],
  ])("%s", (_, was, is, expected) => {
    expect(sinceAfter(was, is)).toBe(expected);
  });
});

const ownership = fc.constantFrom(A, B, TO_B, FENCED_A, NOBODY);
/** Blocks of places appear, disappear and change together, as well as single ones. */
const change = fc.record({
  from: fc.nat({ max: 4_999 }),
  count: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 2_500 })),
  to: fc.option(ownership, { nil: undefined }),
});

describe("after any changes, the slices", () => {
  it("have each place once as it is, are few, and cost at most two writes for each changed place", () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 8 }), (changes) => {
        let [slices, wanted]: [Slice[], Map<string, Ownership>] = [[], new Map()];
        for (const { from, count, to } of changes) {
          const before = wanted;
          wanted = new Map(wanted);
          for (const place of names(5_000).slice(from, from + count)) {
            if (to === undefined) wanted.delete(place);
            else wanted.set(place, to);
          }
          const touched = [...new Set([...before.keys(), ...wanted.keys()])].filter(
            (each) => before.get(each) !== wanted.get(each),
          );
          const packing = pack(slices, wanted, LATER);
          const next = apply(slices, packing);
          const work = packing.written.length + packing.deleted.length;
          expect(work).toBeLessThanOrEqual(Math.min(2 * touched.length, slices.length + next.length));
          expectRight(next, wanted);
          expect(pack(next, wanted, NOON)).toEqual({ written: [], deleted: [] });
          slices = next;
        }
      }),
      { numRuns: 20 },
    );
  }, 30_000);

  it("are right after one step from whatever another program has written", () => {
    const entry = fc.record({
      ownership: ownership.map((each) => ({ ...each, since: NOON })),
      places: fc.array(
        fc.integer({ min: 0, max: 60 }).map((at) => `ns-${at}`),
        { maxLength: 30 },
      ),
    });
    const foreign = fc.uniqueArray(
      fc.record({ name: fc.integer({ min: 0, max: 30 }).map((at) => `s-${at}`), entries: fc.array(entry, { maxLength: 4 }) }),
      { selector: ({ name }) => name, maxLength: 12 },
    );
    fc.assert(
      fc.property(foreign, fc.array(ownership, { maxLength: 50 }), (slices, owners) => {
        const wanted = new Map(owners.map((each, at) => [`ns-${at}`, each]));
        const next = apply(slices, pack(slices, wanted));
        expectRight(next, wanted);
        expect(pack(next, wanted, LATER)).toEqual({ written: [], deleted: [] });
      }),
    );
  });
});

function expectRight(slices: readonly Slice[], wanted: ReadonlyMap<string, Ownership>): void {
  const found = new Map<string, Ownership>();
  for (const { ownership: dated, places } of slices.flatMap(({ entries }) => entries)) {
    const { since: _, ...is } = dated;
    for (const place of places) {
      expect(found.has(place)).toBe(false);
      found.set(place, is);
    }
  }
  expect(found).toEqual(wanted);
  expect(Math.max(0, ...sizes(slices))).toBeLessThanOrEqual(MAX_PLACES);
  expect(Math.min(MAX_PLACES, ...sizes(slices))).toBeGreaterThan(0);
  expect(slices.length).toBeLessThanOrEqual(2 * Math.ceil(wanted.size / MAX_PLACES) + 1);
}
