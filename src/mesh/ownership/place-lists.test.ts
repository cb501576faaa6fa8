import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { budget } from "../../../test/support/fuzz.ts";
import { type Classes, countNamespaces, namespacesByClass, placeLists, placePairs, withPlaces } from "./place-lists.ts";

type Members = Readonly<Record<string, readonly number[]>>;

/** The classes in the order of their first places, with nothing shared. */
function classesOf(members: Members): Classes {
  const keys = [...new Set(Object.values(members).map((rules) => rules.join()))];
  return {
    classes: keys.map((key) => (key === "" ? [] : key.split(",").map(Number))),
    classOf: new Map(Object.entries(members).map(([place, rules]) => [place, keys.indexOf(rules.join())])),
  };
}

const membersIn = ({ classes, classOf }: Classes): Members =>
  Object.fromEntries([...classOf].map(([place, index]) => [place, classes[index] ?? []]));

const place = fc.constantFrom("", "#1", "#2", ..."abcdefgh");
const members = fc.dictionary(place, fc.subarray([0, 1, 2]));
const changes = fc.dictionary(place, fc.option(fc.subarray([0, 1, 2]), { nil: undefined }), { maxKeys: 4 });

describe("the classes after some places have changed", () => {
  it("are those of a new table, for any changes one after the other, and no class is empty", () => {
    fc.assert(
      fc.property(members, fc.array(changes, { maxLength: 6 }), (first, steps) => {
        let [table, expected] = [classesOf(first), { ...first }];
        for (const step of steps) {
          const before = table;
          table = withPlaces(before, new Map(Object.entries(step)));
          expected = Object.fromEntries(
            Object.entries({ ...expected, ...step }).filter((entry): entry is [string, number[]] => entry[1] !== undefined),
          );
          expect(membersIn(table)).toEqual(expected);
          expect(new Set(table.classOf.values()).size).toBe(table.classes.length);
          expect(placeLists(table.classOf)).toEqual(placeLists(new Map(table.classOf)));
          expect(pairsIn(before, table)).toEqual(naivePairs(before, table));
        }
      }),
      budget(),
    );
  });

  it("are the same object if nothing differs, and share the lists of all other classes", () => {
    const base = classesOf({ a: [0], b: [1], c: [1] });
    expect(
      withPlaces(
        base,
        new Map([
          ["a", [0]],
          ["d", undefined],
        ]),
      ),
    ).toBe(base);
    const grown = withPlaces(base, new Map([["aa", [0]]]));
    expect(grown.classes).toBe(base.classes);
    expect(placeLists(grown.classOf)[0]).toEqual(["a", "aa"]);
    expect(placeLists(grown.classOf)[1]).toBe(placeLists(base.classOf)[1]);
  });
});

/** Each place with its classes in both tables. */
function pairsIn(from: Classes, to: Classes): readonly string[] {
  return placePairs(from.classOf, to.classOf)
    .flatMap((pair) => pair.places.map((name) => `${name} ${pair.from} ${pair.to}`))
    .sort();
}

function naivePairs(from: Classes, to: Classes): readonly string[] {
  const names = new Set([...from.classOf.keys(), ...to.classOf.keys()]);
  return [...names].map((name) => `${name} ${from.classOf.get(name)} ${to.classOf.get(name)}`).sort();
}

describe("the pairs of two tables", () => {
  it("contain each place of both once, however the tables were made", () => {
    fc.assert(
      fc.property(members, members, (from, to) => {
        const [a, b] = [classesOf(from), classesOf(to)];
        expect(pairsIn(a, b)).toEqual(naivePairs(a, b));
      }),
      budget(),
    );
  });
});

it("buckets and the cluster scope are no namespaces", () => {
  const table = classesOf({ "": [0], "#3": [0], a: [0], b: [1] });
  expect([countNamespaces(table), namespacesByClass(table)]).toEqual([2, [1, 1]]);
});
