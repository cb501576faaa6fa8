// A route table as the difference to a base table: only the classes of namespaces and the fences may differ.
// Invariant: `applyDelta(base, diffTables(base, next))` gives the same owners as `next`, also with an equal
// base that numbers its classes differently, because a delta identifies a class by its rules.
import type { RouteTable } from "../route/table.ts";
import type { NamespaceClassMessage, RouteDeltaMessage } from "./messages.ts";

/** For tables that differ only in classes and fences. Undefined if the whole table is as short. */
export function diffTables(base: RouteTable, next: RouteTable): RouteDeltaMessage | undefined {
  const budget = next.classOf.size + next.fenced.size;
  const classes = changedClasses(base, next);
  const removed = missingIn(base.classOf, next.classOf);
  const fenced = missingIn(next.fenced, base.fenced);
  const unfenced = missingIn(base.fenced, next.fenced);
  const moved = classes.reduce((sum, { namespaces }) => sum + namespaces.length, 0);
  if (moved + removed.length + fenced.length + unfenced.length >= budget) return undefined;
  return { classes, removed, fenced, unfenced };
}

/**
 * @param problems receives every field that does not fit the base. After a problem the result must not be
 * used
 */
export function applyDelta(base: RouteTable, delta: RouteDeltaMessage, problems: string[]): RouteTable {
  problems.push(...problemsOf(base, delta));
  return { ...base, ...movedClasses(base, delta), fenced: movedFences(base.fenced, delta) };
}

function changedClasses(base: RouteTable, next: RouteTable): NamespaceClassMessage[] {
  if (base.classOf === next.classOf && base.classes === next.classes) return [];
  const idOf = numberByRules();
  const before = base.classes.map(idOf);
  const after = next.classes.map(idOf);
  const changed = new Map<number, string[]>();
  for (const [namespace, index] of next.classOf) {
    const was = base.classOf.get(namespace);
    const id = after[index];
    if (id === undefined || (was !== undefined && before[was] === id)) continue;
    const members = changed.get(id);
    if (members === undefined) changed.set(id, [namespace]);
    else members.push(namespace);
  }
  return [...changed].map(([id, namespaces]) => ({
    rules: next.classes[after.indexOf(id)] ?? [],
    namespaces: namespaces.sort(),
  }));
}

// Gives equal numbers to equal lists of rules.
function numberByRules(): (rules: readonly number[]) => number {
  const ids = new Map<string, number>();
  return (rules) => {
    const key = rules.join();
    const id = ids.get(key) ?? ids.size;
    ids.set(key, id);
    return id;
  };
}

interface Names {
  has(name: string): boolean;
  keys(): Iterable<string>;
}

function missingIn(names: Names, others: Names): string[] {
  if (names === others) return [];
  const missing: string[] = [];
  for (const name of names.keys()) if (!others.has(name)) missing.push(name);
  return missing.sort();
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

function movedClasses(base: RouteTable, { classes: moved, removed }: RouteDeltaMessage): Pick<RouteTable, "classes" | "classOf"> {
  const { classes, classOf } = base;
  if (moved.length === 0 && removed.length === 0) return { classes, classOf };
  const rows = [...classes];
  const members = new Map(classOf);
  for (const name of removed) members.delete(name);
  for (const { rules, namespaces } of moved) {
    const row = [...rules].sort((a, b) => a - b);
    const knownRow = rows.findIndex((other) => other.length === row.length && other.every((rule, at) => rule === row[at]));
    const index = knownRow === -1 ? rows.push(row) - 1 : knownRow;
    for (const name of namespaces) members.set(name, index);
  }
  return withoutEmpty(rows, members);
}

// Classes without namespaces would accumulate while namespaces are created and deleted.
function withoutEmpty(
  rows: readonly (readonly number[])[],
  members: Map<string, number>,
): Pick<RouteTable, "classes" | "classOf"> {
  const usedClasses = [...new Set(members.values())].sort((a, b) => a - b);
  if (usedClasses.length === rows.length) return { classes: rows, classOf: members };
  const numbers = new Map(usedClasses.map((old, index) => [old, index]));
  for (const [name, old] of members) members.set(name, numbers.get(old) ?? old);
  return { classes: usedClasses.map((old) => rows[old] ?? []), classOf: members };
}

function movedFences(base: ReadonlySet<string>, { fenced, unfenced }: RouteDeltaMessage): ReadonlySet<string> {
  if (fenced.length === 0 && unfenced.length === 0) return base;
  const fences = new Set(base);
  for (const name of unfenced) fences.delete(name);
  for (const name of fenced) fences.add(name);
  return fences;
}
