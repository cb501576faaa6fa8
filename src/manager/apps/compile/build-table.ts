// Builds a route table from the rules of an app and the namespaces, step by step. Pure. Invariants: a step
// judges one namespace, so the caller may pause after each; an unchanged namespace keeps its class and is not
// judged again; if nothing differs, the result is the last table itself, so that all comparisons with it stay
// valid.
import type { RouteTable } from "../../../route/table.ts";
import type { Matches, NamespaceFacts, RouteSpec } from "./route-spec.ts";

export interface EarlierTable {
  readonly table: RouteTable;
  /** The namespaces that are new since then, or have other labels. Others may change meanwhile. */
  readonly changed: ReadonlySet<string>;
}

/**
 * Rules in all classes together, of 8 bytes each. 10,000 namespaces in 64 classes have some hundred. A
 * namespace may have 64 apps: without the bound, 4,096 rules and 2,000 namespaces took 23 MB for each.
 */
export const MAX_TABLE_ENTRIES = 131_072;

/** Returns undefined if the table would be too large. */
export function* buildTable(
  route: RouteSpec,
  namespaces: readonly NamespaceFacts[],
  matches: Matches,
  earlier?: EarlierTable,
): Generator<void, RouteTable | undefined> {
  const classes = createClasses();
  const classOf = new Map<string, number>();
  const keptClasses = new Map<number, number>();
  for (const [place, members] of route.places) classOf.set(place, classes.indexOf(members));
  for (const namespace of namespaces) {
    const before = keptClass(namespace, earlier);
    const index =
      (before === undefined ? undefined : keptClasses.get(before)) ??
      classes.indexOf(earlier?.table.classes[before ?? -1] ?? route.membersOf(namespace, matches));
    if (before !== undefined) keptClasses.set(before, index);
    classOf.set(namespace.name, index);
    if (classes.entries > MAX_TABLE_ENTRIES) return undefined;
    yield;
  }
  if (earlier !== undefined && isSame(earlier.table, classes.list, classOf)) return earlier.table;
  return { rules: route.rules, classes: classes.list, classOf, sharedResources: route.sharedResources, fenced: new Set() };
}

/** The classes of a table: equal members give the same index. */
export function createClasses() {
  const list: (readonly number[])[] = [];
  const byMembers = new Map<string, number>();
  let count = 0;
  return {
    list,
    get entries() {
      return count;
    },
    indexOf(members: readonly number[]): number {
      const key = members.join(",");
      const known = byMembers.get(key);
      if (known !== undefined) return known;
      count += members.length;
      byMembers.set(key, list.push(members) - 1);
      return list.length - 1;
    },
  };
}

function isSame(table: RouteTable, classes: readonly (readonly number[])[], classOf: ReadonlyMap<string, number>): boolean {
  if (table.classOf.size !== classOf.size || table.classes.length !== classes.length) return false;
  const keys = classes.map((members) => members.join(","));
  if (table.classes.some((members, index) => members.join(",") !== keys[index])) return false;
  const names = table.classOf.entries();
  for (const [name, index] of classOf) {
    const [knownName, knownIndex] = names.next().value ?? [];
    if (name !== knownName || index !== knownIndex) return false;
  }
  return true;
}

/** The namespaces about which `buildTable` will ask: all but those that keep their class. */
export function namesToMatch(namespaces: readonly NamespaceFacts[], earlier: EarlierTable | undefined): string[] {
  return namespaces.filter((namespace) => keptClass(namespace, earlier) === undefined).map(({ name }) => name);
}

function keptClass({ name }: NamespaceFacts, earlier: EarlierTable | undefined): number | undefined {
  return earlier?.changed.has(name) ? undefined : earlier?.table.classOf.get(name);
}
