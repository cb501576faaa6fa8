// Route table -> the snapshot of a subset, with its digest. Pure but for the hash.
import { createHash } from "node:crypto";
import type { AppRef, CallerPolicy, Snapshot } from "../../route/snapshot.ts";
import type { RouteTable } from "../../route/table.ts";
import { tableToWire } from "../../wire/snapshot-codec.ts";

/** A snapshot without the version, which is the app's and not the rules'. */
export type Rules = Omit<Snapshot, "version">;

/** What a subset's proxies are to enforce. Equal rules have equal digests, in every manager replica and after restarts. */
export function rulesOf(facts: {
  app: AppRef;
  subset: string;
  podNamespace: string;
  lockName: string;
  table: RouteTable;
  callers: CallerPolicy;
}): Rules {
  const { app, subset, podNamespace, lockName, table, callers } = facts;
  const own = [app.namespace, app.name, subset, podNamespace, lockName];
  return { ...facts, digest: digestOf([...own, tableDigest(table), callers]) };
}

// Many subsets and many reconciles share one table of thousands of namespaces.
const digests = new WeakMap<RouteTable, string>();

function tableDigest(table: RouteTable): string {
  const digest = digests.get(table) ?? digestOf(canonicalTable(table));
  digests.set(table, digest);
  return digest;
}

/** A digest of plain data: half of a SHA-256, in hex. */
export function digestOf(data: unknown): string {
  return createHash("sha256").update(JSON.stringify(data)).digest("hex").slice(0, 32);
}

// Classes are numbered by the order of the namespaces that made them; sorted, the digest depends on the rules alone.
function canonicalTable(table: RouteTable): unknown {
  const wire = tableToWire(table);
  const classes = wire.classes.map((row) => [row.rules.join(","), row.namespaces] as const).sort(([a], [b]) => (a < b ? -1 : 1));
  const shown = (wire.retained ?? []).map((row) => JSON.stringify(row)).sort();
  return [wire.rules, classes, wire.sharedResources, wire.fenced, ...(shown.length === 0 ? [] : [shown])];
}
