// A snapshot as the difference to another one: only namespaces' classes, fences, version and digest may differ, since nothing else
// moves often. Pure. Invariant: `applyDelta(base, diffSnapshots(base, next))` rules as `next` does, also for a base of the same
// digest that numbers its classes differently: a class is named by its rules. The manager's registry makes deltas, once for each
// pair of snapshots; the proxy's intake applies them.
import type { Snapshot } from "../route/snapshot.ts";
import type { RouteTable } from "../route/table.ts";
import type { NamespaceClassMessage, SnapshotDeltaMessage } from "./messages.ts";
import { ruleToWire } from "./rule-codec.ts";
import { SnapshotInvalidError } from "./snapshot-codec.ts";

/** A delta before it is sent: the nonce names the sending. */
export type SnapshotDelta = Omit<SnapshotDeltaMessage, "nonce">;

/**
 * The difference between two snapshots of one proxy, or of several with equal rules. The cost grows with the number of namespaces.
 * @returns undefined if more differs than a delta can say, or if the whole is as short
 */
export function diffSnapshots(base: Snapshot, next: Snapshot): SnapshotDelta | undefined {
  if (!isDeltaEnough(base, next)) return undefined;
  const budget = next.table.classOf.size + next.table.fenced.size;
  const classes = changedClasses(base.table, next.table);
  const removed = missingIn(base.table.classOf, next.table.classOf);
  const fenced = missingIn(next.table.fenced, base.table.fenced);
  const unfenced = missingIn(base.table.fenced, next.table.fenced);
  const moved = classes.reduce((sum, { namespaces }) => sum + namespaces.length, 0);
  if (moved + removed.length + fenced.length + unfenced.length >= budget) return undefined;
  return { version: next.version, baseDigest: base.digest, digest: next.digest, classes, removed, fenced, unfenced };
}

/**
 * The snapshot that the delta leads to. What it leaves alone is shared with the base.
 * @throws SnapshotInvalidError naming every field that does not fit the base
 */
export function applyDelta(base: Snapshot, delta: SnapshotDelta): Snapshot {
  const problems = problemsOf(base, delta);
  if (problems.length > 0) throw new SnapshotInvalidError(problems);
  const { version, digest } = delta;
  const table = { ...base.table, ...movedClasses(base.table, delta), fenced: movedFences(base.table.fenced, delta) };
  return { ...base, version, digest, table };
}

function isDeltaEnough(base: Snapshot, next: Snapshot): boolean {
  const [a, b] = [base.table, next.table];
  const sameTable = a.rules === b.rules && a.sharedResources === b.sharedResources && a.retained === b.retained;
  const sameRest =
    base.app.namespace === next.app.namespace &&
    base.app.name === next.app.name &&
    base.subset === next.subset &&
    base.podNamespace === next.podNamespace &&
    base.lockName === next.lockName;
  if (!sameRest) return false;
  return (sameTable && base.callers === next.callers) || fixedParts(base) === fixedParts(next);
}

// What no delta can change, as text.
function fixedParts({ table, callers }: Snapshot): string {
  const { userAgent, defaultOnlyUserAgents, stripManagedFields } = callers;
  const matches = (of: RouteTable["sharedResources"]) => of.map(({ apiGroups, resources }) => [apiGroups, resources]);
  return JSON.stringify([
    [userAgent, defaultOnlyUserAgents, stripManagedFields],
    table.rules.map(ruleToWire),
    matches(table.sharedResources),
    (table.retained ?? []).map(({ namespaces, rules }) => [
      [...namespaces].sort(),
      rules.map(({ resources, visible }) => [matches(resources), visible]),
    ]),
  ]);
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

// Equal numbers for equal lists of rules.
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

function problemsOf(base: Snapshot, delta: SnapshotDelta): string[] {
  const { version, baseDigest, digest, classes, removed, fenced, unfenced } = delta;
  const { table } = base;
  const problems: string[] = [];
  const once = (field: string, names: readonly string[], seen: Set<string>, fits: (name: string) => boolean, why: string) => {
    for (const name of names) {
      if (seen.has(name)) problems.push(`${field}: "${name}" is named twice`);
      else if (!fits(name)) problems.push(`${field}: "${name}" ${why}`);
      seen.add(name);
    }
  };
  if (!Number.isSafeInteger(version) || version <= 0) problems.push(`version: ${version} is not positive`);
  if (baseDigest !== base.digest) problems.push(`baseDigest: ${baseDigest} is not ${base.digest}, which is in force`);
  if (digest === "") problems.push("digest: missing");
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

function movedClasses(base: RouteTable, { classes: moved, removed }: SnapshotDelta): Pick<RouteTable, "classes" | "classOf"> {
  const { classes, classOf } = base;
  if (moved.length === 0 && removed.length === 0) return { classes, classOf };
  const rows = [...classes];
  const members = new Map(classOf);
  for (const name of removed) members.delete(name);
  for (const { rules, namespaces } of moved) {
    const row = [...rules].sort((a, b) => a - b);
    const known = rows.findIndex((other) => other.length === row.length && other.every((rule, at) => rule === row[at]));
    const index = known === -1 ? rows.push(row) - 1 : known;
    for (const name of namespaces) members.set(name, index);
  }
  return withoutEmpty(rows, members);
}

// Classes come and go with namespaces: those that have none any more would pile up.
function withoutEmpty(
  rows: readonly (readonly number[])[],
  members: Map<string, number>,
): Pick<RouteTable, "classes" | "classOf"> {
  const used = [...new Set(members.values())].sort((a, b) => a - b);
  if (used.length === rows.length) return { classes: rows, classOf: members };
  const numbers = new Map(used.map((old, index) => [old, index]));
  for (const [name, old] of members) members.set(name, numbers.get(old) ?? old);
  return { classes: used.map((old) => rows[old] ?? []), classOf: members };
}

function movedFences(base: ReadonlySet<string>, { fenced, unfenced }: SnapshotDelta): ReadonlySet<string> {
  if (fenced.length === 0 && unfenced.length === 0) return base;
  const fences = new Set(base);
  for (const name of unfenced) fences.delete(name);
  for (const name of fenced) fences.add(name);
  return fences;
}
