// A route table as the difference to a base table: only the classes of namespaces and the fences may differ.
// Invariant: `applyDelta(base, diffTables(base, next))` gives the same owners as `next`, also with an equal
// base that numbers its classes differently, because a delta identifies a class by its rules.
import { z } from "zod";
import { type Classes, type PlacePair, placePairs, withPlaces } from "../ownership/place-lists.ts";
import type { RouteTable } from "../ownership/table.ts";
import { rowsToJson } from "./table-json.ts";
import { NAMES, noRule, type PlacesRow, ROWS } from "./table-schema.ts";

/** `classes`: places that are new or that other rules contain now. No place is in two of the lists of places, or of fences. */
export const TABLE_DELTA = z.object({ classes: ROWS, removed: NAMES, fenced: NAMES, unfenced: NAMES });
export type TableDelta = z.output<typeof TABLE_DELTA>;

/** For tables that differ only in classes and fences: a TableDelta in JSON. Undefined if the whole table is as short. */
export function diffTables(base: RouteTable, next: RouteTable): Uint8Array | undefined {
  const budget = next.classOf.size + next.fenced.size;
  const { count, json } = changedClasses(base, next);
  const fenced = missingIn(next.fenced, base.fenced);
  const unfenced = missingIn(base.fenced, next.fenced);
  if (count + fenced.length + unfenced.length >= budget) return undefined;
  return Buffer.from(`{${json},"fenced":${JSON.stringify(fenced)},"unfenced":${JSON.stringify(unfenced)}}`);
}

/**
 * @param problems receives every field that does not fit the base. After a problem the result must not be
 * used
 */
export function applyDelta(base: RouteTable, delta: TableDelta, problems: string[]): RouteTable {
  for (const problem of problemsOf(base, delta)) problems.push(problem);
  const { classes, classOf } = movedClasses(base, delta);
  return { ...base, classes, classOf, fenced: movedFences(base.fenced, delta) };
}

interface ClassChanges {
  /** The number of namespaces. */
  readonly count: number;
  /** The fields `classes` and `removed` of a TableDelta. */
  readonly json: string;
}

const knownChanges = new WeakMap<
  readonly PlacePair[],
  ClassChanges & { readonly from: readonly Row[]; readonly to: readonly Row[] }
>();
type Row = readonly number[];

// The tables of 64 shards have the same classes, so the changes of all of them are found and encoded once.
function changedClasses(base: RouteTable, next: RouteTable): ClassChanges {
  if (base.classOf === next.classOf && base.classes === next.classes) return changesOf([], []);
  const pairs = placePairs(base.classOf, next.classOf);
  const known = knownChanges.get(pairs);
  if (known !== undefined && known.from === base.classes && known.to === next.classes) return known;
  const changed = new Map<string, { readonly rules: Row; readonly places: string[] }>();
  const removed: string[] = [];
  for (const { from, to, places } of pairs) {
    const rules = to === undefined ? undefined : (next.classes[to] ?? []);
    if (rules === undefined) for (const place of places) removed.push(place);
    else if (from === undefined || base.classes[from]?.join() !== rules.join()) {
      const row = changed.get(rules.join()) ?? { rules, places: [] };
      changed.set(rules.join(), row);
      for (const place of places) row.places.push(place); // too many for arguments
    }
  }
  const changes = changesOf([...changed.values()], removed);
  knownChanges.set(pairs, { ...changes, from: base.classes, to: next.classes });
  return changes;
}

function changesOf(rows: readonly PlacesRow[], removed: readonly string[]): ClassChanges {
  const classes = rows.map(({ rules, places }) => ({ rules, places: [...places].sort() }));
  return {
    count: rows.reduce((sum, { places }) => sum + places.length, removed.length),
    json: `"classes":${rowsToJson(classes)},"removed":${JSON.stringify([...removed].sort())}`,
  };
}

function missingIn(names: ReadonlySet<string>, others: ReadonlySet<string>): string[] {
  if (names === others) return [];
  return [...names].filter((name) => !others.has(name)).sort();
}

function problemsOf(table: RouteTable, { classes, removed, fenced, unfenced }: TableDelta): string[] {
  const problems: string[] = [];
  const once = (field: string, names: readonly string[], seen: Set<string>, fits: (name: string) => boolean, why: string) => {
    for (const name of names) {
      if (seen.has(name)) problems.push(`${field}: "${name}" is named twice`);
      else if (!fits(name)) problems.push(`${field}: "${name}" ${why}`);
      seen.add(name);
    }
  };
  const moved = new Set<string>();
  classes.forEach(({ rules, places }, index) => {
    const unknown = rules.find((rule) => rule >= table.rules.length);
    if (unknown !== undefined) problems.push(`classes.${index}.rules: ${noRule(unknown, table.rules.length)}`);
    once(`classes.${index}.places`, places, moved, () => true, "");
  });
  once("removed", removed, moved, (name) => table.classOf.has(name), "is not known");
  const fences = new Set<string>();
  once("fenced", fenced, fences, (name) => !table.fenced.has(name), "is fenced already");
  once("unfenced", unfenced, fences, (name) => table.fenced.has(name), "is not fenced");
  return problems;
}

function movedClasses(base: RouteTable, { classes, removed }: TableDelta): Classes {
  const members = new Map<string, readonly number[] | undefined>();
  for (const name of removed) members.set(name, undefined);
  for (const { rules, places } of classes) {
    const row = [...rules].sort((a, b) => a - b);
    for (const name of places) members.set(name, row);
  }
  return withPlaces(base, members);
}

function movedFences(base: ReadonlySet<string>, { fenced, unfenced }: TableDelta): ReadonlySet<string> {
  if (fenced.length === 0 && unfenced.length === 0) return base;
  const fences = new Set(base);
  for (const name of unfenced) fences.delete(name);
  for (const name of fenced) fences.add(name);
  return fences;
}
