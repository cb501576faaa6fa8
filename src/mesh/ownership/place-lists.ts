// The places of each class of a route table, and how two tables divide the same places. Pure. Invariant: a
// table that was made from another one by `withPlaces` shares its lists of all classes that have not changed.
// So to compare the two costs what has changed, and not what the table has.
import { remember } from "../../base/remember.ts";
import { BUCKETS, CLUSTER_SCOPE } from "../../kube/place.ts";
import type { RouteTable } from "./table.ts";

export type Classes = Pick<RouteTable, "classes" | "classOf">;
type ClassOf = RouteTable["classOf"];

const knownLists = new WeakMap<ClassOf, readonly (readonly string[])[]>();

/** For each class its places in ascending order. The last classes may be missing if they have none. */
export function placeLists(classOf: ClassOf): readonly (readonly string[])[] {
  const known = knownLists.get(classOf);
  if (known !== undefined) return known;
  const lists: string[][] = [];
  for (const [place, index] of classOf) {
    while (lists.length <= index) lists.push([]);
    lists[index]?.push(place);
  }
  for (const list of lists) list.sort();
  knownLists.set(classOf, lists);
  return lists;
}

/** Places that have the same class in each of two tables; undefined in a table that does not know them. */
export interface PlacePair {
  readonly from: number | undefined;
  readonly to: number | undefined;
  /** Not empty. */
  readonly places: readonly string[];
}

const pairsTo = remember((to: ClassOf) => remember((from: ClassOf): readonly PlacePair[] => makePairs(from, to)));

/** All places of both tables. Computed once for each pair of tables. */
export function placePairs(from: ClassOf, to: ClassOf): readonly PlacePair[] {
  return pairsTo(to)(from);
}

function makePairs(from: ClassOf, to: ClassOf): PlacePair[] {
  const [before, next] = [placeLists(from), placeLists(to)];
  const pairs: PlacePair[] = [];
  const moved = new Map<
    string,
    { readonly from: number | undefined; readonly to: number | undefined; readonly places: string[] }
  >();
  const addMoved = (place: string) => {
    const [was, is] = [from.get(place), to.get(place)];
    const pair = moved.get(`${was} ${is}`) ?? { from: was, to: is, places: [] };
    moved.set(`${was} ${is}`, pair);
    pair.places.push(place);
  };
  const compared = new Set<number>();
  for (const [was, list] of before.entries()) {
    const is = list[0] === undefined ? undefined : to.get(list[0]);
    if (is === undefined || compared.has(is)) {
      for (const place of list) addMoved(place);
      continue;
    }
    // Most of a class stay together.
    compared.add(is);
    const { common, left, joined } = compareLists(list, next[is] ?? []);
    pairs.push({ from: was, to: is, places: common });
    for (const place of left) addMoved(place);
    for (const place of joined) if (!from.has(place)) addMoved(place);
  }
  for (const [is, list] of next.entries()) {
    if (!compared.has(is)) for (const place of list) if (!from.has(place)) addMoved(place);
  }
  return [...pairs, ...moved.values()];
}

/** Compares two ascending lists. Equal lists need not be one, since tables from the wire share none. */
function compareLists(before: readonly string[], next: readonly string[]) {
  const [left, joined]: [string[], string[]] = [[], []];
  if (before === next) return { common: before, left, joined };
  let [at, nextAt] = [0, 0];
  for (;;) {
    const [place, other] = [before[at], next[nextAt]];
    if (place === other) {
      if (place === undefined) break;
      at++;
      nextAt++;
    } else if (other === undefined || (place !== undefined && place < other)) {
      left.push(place as string);
      at++;
    } else {
      joined.push(other);
      nextAt++;
    }
  }
  if (left.length === 0) return { common: before, left, joined };
  if (joined.length === 0) return { common: next, left, joined };
  const gone = new Set(left);
  return { common: before.filter((place) => !gone.has(place)), left, joined };
}

/** The first class with the rules of each key: their indices, joined by commas. */
export const classIndex = remember((classes: RouteTable["classes"]): ReadonlyMap<string, number> => {
  const index = new Map<string, number>();
  for (const [at, rules] of classes.entries()) if (!index.has(rules.join())) index.set(rules.join(), at);
  return index;
});

interface Move {
  readonly place: string;
  readonly from: number | undefined;
  readonly to: number | undefined;
}

/**
 * The classes after some places have changed; the base itself if nothing differs.
 * @param members the rules that contain each changed place; undefined for a place that is gone
 */
export function withPlaces(base: Classes, members: ReadonlyMap<string, readonly number[] | undefined>): Classes {
  const added: (readonly number[])[] = [];
  const addedIndex = new Map<string, number>();
  const numberOf = (rules: readonly number[]): number => {
    const key = rules.join();
    const number = classIndex(base.classes).get(key) ?? addedIndex.get(key) ?? base.classes.length + added.push(rules) - 1;
    if (number >= base.classes.length) addedIndex.set(key, number);
    return number;
  };
  const moves: Move[] = [];
  for (const [place, rules] of members) {
    const [from, to] = [base.classOf.get(place), rules && numberOf(rules)];
    if (from !== to) moves.push({ place, from, to });
  }
  if (moves.length === 0) return base;
  const classOf = new Map(base.classOf);
  for (const { place, to } of moves) {
    if (to === undefined) classOf.delete(place);
    else classOf.set(place, to);
  }
  const classes = added.length === 0 ? base.classes : [...base.classes, ...added];
  return withoutEmpty(classes, classOf, movedLists(placeLists(base.classOf), classes.length, moves));
}

function movedLists(
  before: readonly (readonly string[])[],
  count: number,
  moves: readonly Move[],
): readonly (readonly string[])[] {
  const lists = Array.from({ length: count }, (_, at) => before[at] ?? []);
  const leaving = Map.groupBy(moves, ({ from }) => from);
  const coming = Map.groupBy(moves, ({ to }) => to);
  for (const index of new Set([...leaving.keys(), ...coming.keys()])) {
    if (index === undefined) continue;
    const gone = new Set(leaving.get(index)?.map(({ place }) => place));
    const places = (lists[index] ?? []).filter((place) => !gone.has(place));
    const come = coming.get(index) ?? [];
    lists[index] = come.length === 0 ? places : [...places, ...come.map(({ place }) => place)].sort();
  }
  return lists;
}

// Classes without places would accumulate while namespaces come and go.
function withoutEmpty(
  classes: RouteTable["classes"],
  classOf: Map<string, number>,
  lists: readonly (readonly string[])[],
): Classes {
  const used = classes.flatMap((_, index) => ((lists[index]?.length ?? 0) > 0 ? [index] : []));
  if (used.length === classes.length) {
    knownLists.set(classOf, lists);
    return { classes, classOf };
  }
  const numbers = new Map(used.map((index, number) => [index, number]));
  for (const [place, index] of classOf) classOf.set(place, numbers.get(index) ?? index);
  const usedLists = used.map((index) => lists[index] ?? []);
  knownLists.set(classOf, usedLists);
  return { classes: used.map((index) => classes[index] ?? []), classOf };
}

/** The number of namespaces that the table knows. */
export function countNamespaces({ classOf }: Pick<RouteTable, "classOf">): number {
  return classOf.size - CLUSTER_PLACES.filter((place) => classOf.has(place)).length;
}

/** The number of namespaces in each class. */
export function namespacesByClass({ classes, classOf }: Classes): readonly number[] {
  const lists = placeLists(classOf);
  const counts = classes.map((_, index) => lists[index]?.length ?? 0);
  for (const place of CLUSTER_PLACES) {
    const index = classOf.get(place);
    if (index !== undefined) counts[index] = (counts[index] ?? 0) - 1;
  }
  return counts;
}

const CLUSTER_PLACES: readonly string[] = [CLUSTER_SCOPE, ...BUCKETS];
