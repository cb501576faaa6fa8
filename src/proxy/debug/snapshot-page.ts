// /debug/snapshot: what the proxy enforces, for people. Pure. Invariant: bounded for any size of the cluster, with a mark where entries are
// missing; it holds no secrets, only names of namespaces. Called by debug-pages.ts.
import { lockNameFor } from "../../route/lock.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import { subsetDisplayName } from "../../route/subset-name.ts";

const MAX_RULES = 200;
const MAX_CLASSES = 100;
const MAX_NAMES = 100;

/** A list cut to its bound. */
interface Bounded<T> {
  readonly total: number;
  readonly first: readonly T[];
  readonly truncated: boolean;
}

/** What to show; an app without a snapshot says so. */
export function snapshotPage(snapshot: Snapshot | undefined): object {
  if (snapshot === undefined) return { snapshot: null };
  const { version, digest, app, subset, podNamespace, lockName, table, callers } = snapshot;
  const names: string[][] = table.classes.map(() => []);
  for (const [namespace, index] of table.classOf) names[index]?.push(namespace);
  const classes = table.classes.map((rules, index) => ({ rules, namespaces: bounded(names[index]?.sort() ?? [], MAX_NAMES) }));
  return {
    version,
    digest,
    app,
    subset: subsetDisplayName(subset),
    podNamespace,
    lock: lockName === "" ? null : { name: lockName, upstream: lockNameFor(lockName, subset) },
    rules: bounded(table.rules, MAX_RULES),
    sharedResources: bounded(table.sharedResources, MAX_RULES),
    namespaces: { total: table.classOf.size, classes: bounded(classes, MAX_CLASSES) },
    fenced: bounded([...table.fenced].sort(), MAX_NAMES),
    callers,
  };
}

function bounded<T>(all: readonly T[], max: number): Bounded<T> {
  return { total: all.length, first: all.slice(0, max), truncated: all.length > max };
}
