// Builds a route table from the rules of an app and the namespaces, step by step. Pure. Invariants: a step
// judges one namespace, so the caller may pause after each. With an earlier table only the changed namespaces
// are judged. If nothing differs, the result is the earlier table itself, so all comparisons with it stay valid.
import { createClasses } from "../../../mesh/ownership/classes.ts";
import { placeLists, withPlaces } from "../../../mesh/ownership/place-lists.ts";
import type { RouteTable } from "../../../mesh/ownership/table.ts";
import type { Matches, NamespaceFacts, RouteSpec } from "./route-spec.ts";

/** A table of the same route. */
export interface EarlierTable {
  readonly table: RouteTable;
  /** The namespaces that are gone since then. */
  readonly gone: readonly string[];
}

/**
 * Rules in all classes together, of 8 bytes each. 10,000 namespaces in 64 classes have some hundred. A
 * namespace may have 64 apps: without the bound, 4,096 rules and 2,000 namespaces took 23 MB for each.
 */
export const MAX_TABLE_ENTRIES = 131_072;

/**
 * Returns undefined if the table would be too large.
 * @param namespaces all of them; with an earlier table those that are new or have changed since then
 */
export function* buildTable(
  route: RouteSpec,
  namespaces: readonly NamespaceFacts[],
  matches: Matches,
  earlier?: EarlierTable,
): Generator<void, RouteTable | undefined> {
  if (earlier !== undefined) return yield* changedTable(route, namespaces, matches, earlier);
  const classes = createClasses();
  const classOf = new Map<string, number>();
  for (const [place, members] of route.places) classOf.set(place, classes.indexOf(members));
  for (const namespace of namespaces) {
    classOf.set(namespace.name, classes.indexOf(route.membersOf(namespace, matches)));
    if (classes.entries > MAX_TABLE_ENTRIES) return undefined;
    yield;
  }
  placeLists(classOf); // a step of its own: the plan needs the lists
  yield;
  return { rules: route.rules, classes: classes.list, classOf, sharedResources: route.sharedResources, fenced: new Set() };
}

function* changedTable(
  route: RouteSpec,
  namespaces: readonly NamespaceFacts[],
  matches: Matches,
  { table, gone }: EarlierTable,
): Generator<void, RouteTable | undefined> {
  const members = new Map<string, readonly number[] | undefined>(gone.map((name) => [name, undefined]));
  for (const namespace of namespaces) {
    members.set(namespace.name, route.membersOf(namespace, matches));
    yield;
  }
  const { classes, classOf } = withPlaces(table, members);
  if (classOf === table.classOf) return table;
  const entries = classes === table.classes ? 0 : classes.reduce((sum, rules) => sum + rules.length, 0);
  return entries > MAX_TABLE_ENTRIES ? undefined : { ...table, classes, classOf };
}
