// A route table as the difference to a base table: only the classes of namespaces and the fences may differ.
// Invariant: `applyDelta(base, diffTables(base, next))` gives the same owners as `next`, also with an equal
// base that numbers its classes differently, because a delta identifies a class by its rules.

import type { RouteDeltaMessage } from "../mesh/contract/messages.ts";
import { type Classes, type PlacePair, placePairs, withPlaces } from "../mesh/ownership/place-lists.ts";
import type { RouteTable } from "../mesh/ownership/table.ts";
import { classesToBytes } from "./class-bytes.ts";
import { ROUTE_DELTA_MESSAGE } from "./load-proto.ts";

/** The number of the field `classes` of RouteDelta. */
const CLASSES_FIELD = 1;

/** For tables that differ only in classes and fences: a RouteDelta. Undefined if the whole table is as short. */
export function diffTables(base: RouteTable, next: RouteTable): Uint8Array | undefined {
  const budget = next.classOf.size + next.fenced.size;
  const { count, bytes } = changedClasses(base, next);
  const fenced = missingIn(next.fenced, base.fenced);
  const unfenced = missingIn(base.fenced, next.fenced);
  if (count + fenced.length + unfenced.length >= budget) return undefined;
  return Buffer.concat([bytes, ROUTE_DELTA_MESSAGE.encode({ classes: [], removed: [], fenced, unfenced })]);
}

/**
 * @param problems receives every field that does not fit the base. After a problem the result must not be
 * used
 */
export function applyDelta(base: RouteTable, delta: RouteDeltaMessage, problems: string[]): RouteTable {
  problems.push(...problemsOf(base, delta));
  const { classes, classOf } = movedClasses(base, delta);
  return { ...base, classes, classOf, fenced: movedFences(base.fenced, delta) };
}

interface ClassChanges {
  /** The number of namespaces. */
  readonly count: number;
  /** The fields `classes` and `removed` of a RouteDelta. */
  readonly bytes: Uint8Array;
}

const knownChanges = new WeakMap<
  readonly PlacePair[],
  ClassChanges & { readonly from: readonly Row[]; readonly to: readonly Row[] }
>();
type Row = readonly number[];

// The tables of 64 shards have the same classes, so the changes of all of them are found and encoded once.
function changedClasses(base: RouteTable, next: RouteTable): ClassChanges {
  if (base.classOf === next.classOf && base.classes === next.classes) return { count: 0, bytes: new Uint8Array() };
  const pairs = placePairs(base.classOf, next.classOf);
  const known = knownChanges.get(pairs);
  if (known !== undefined && known.from === base.classes && known.to === next.classes) return known;
  const changed = new Map<string, { readonly rules: Row; readonly namespaces: string[] }>();
  const removed: string[] = [];
  for (const { from, to, places } of pairs) {
    const rules = to === undefined ? undefined : (next.classes[to] ?? []);
    if (rules === undefined) for (const place of places) removed.push(place);
    else if (from === undefined || base.classes[from]?.join() !== rules.join()) {
      const row = changed.get(rules.join()) ?? { rules, namespaces: [] };
      changed.set(rules.join(), row);
      for (const place of places) row.namespaces.push(place);
    }
  }
  const rows = [...changed.values()];
  for (const { namespaces } of rows) namespaces.sort();
  const rest = ROUTE_DELTA_MESSAGE.encode({ classes: [], removed: removed.sort(), fenced: [], unfenced: [] });
  const changes = {
    count: rows.reduce((sum, { namespaces }) => sum + namespaces.length, removed.length),
    bytes: Buffer.concat([classesToBytes(CLASSES_FIELD, rows), rest]),
  };
  knownChanges.set(pairs, { ...changes, from: base.classes, to: next.classes });
  return changes;
}

function missingIn(names: ReadonlySet<string>, others: ReadonlySet<string>): string[] {
  if (names === others) return [];
  return [...names].filter((name) => !others.has(name)).sort();
}

function problemsOf(table: RouteTable, { classes, removed, fenced, unfenced }: RouteDeltaMessage): string[] {
  const problems: string[] = [];
  const once = (field: string, names: readonly string[], seen: Set<string>, fits: (name: string) => boolean, why: string) => {
    for (const name of names) {
      if (seen.has(name)) problems.push(`${field}: "${name}" is named twice`);
      else if (!fits(name)) problems.push(`${field}: "${name}" ${why}`);
      seen.add(name);
    }
  };
  const moved = new Set<string>();
  classes.forEach(({ rules, namespaces }, index) => {
    for (const rule of rules) {
      const exists = Number.isInteger(rule) && rule >= 0 && rule < table.rules.length;
      if (!exists) problems.push(`classes[${index}].rules: ${rule} is no rule, there are ${table.rules.length}`);
    }
    once(`classes[${index}].namespaces`, namespaces, moved, () => true, "");
  });
  once("removed", removed, moved, (name) => table.classOf.has(name), "is not known");
  const fences = new Set<string>();
  once("fenced", fenced, fences, (name) => !table.fenced.has(name), "is fenced already");
  once("unfenced", unfenced, fences, (name) => table.fenced.has(name), "is not fenced");
  return problems;
}

function movedClasses(base: RouteTable, { classes, removed }: RouteDeltaMessage): Classes {
  const members = new Map<string, readonly number[] | undefined>();
  for (const name of removed) members.set(name, undefined);
  for (const { rules, namespaces } of classes) {
    const row = [...rules].sort((a, b) => a - b);
    for (const name of namespaces) members.set(name, row);
  }
  return withPlaces(base, members);
}

function movedFences(base: ReadonlySet<string>, { fenced, unfenced }: RouteDeltaMessage): ReadonlySet<string> {
  if (fenced.length === 0 && unfenced.length === 0) return base;
  const fences = new Set(base);
  for (const name of unfenced) fences.delete(name);
  for (const name of fenced) fences.add(name);
  return fences;
}
