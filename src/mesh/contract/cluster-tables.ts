// The route tables of other clusters in JSON: whole, as the difference to a base, and by their hashes. A list in the order of
// the clusters' names, so that equal tables have equal bytes.
import { z } from "zod";
import type { ClusterTables } from "../ownership/snapshot.ts";
import type { RouteTable } from "../ownership/table.ts";
import { applyDelta, diffTables, TABLE_DELTA } from "./table-delta.ts";
import { fixedPartsToJson, tableHash, tableToBytes } from "./table-json.ts";
import { TABLE_JSON, tableFromJson } from "./table-schema.ts";

/** The most clusters of a namespace with a table: each pod of the namespace's apps gets all of them. */
export const MAX_CLUSTER_TABLES = 32;

const NAME = z.string().min(1, "missing");

export const TABLE = TABLE_JSON.transform((json, { addIssue }) =>
  tableFromJson(json, (path, message) => addIssue({ code: "custom", path: [...path], message })),
);

function byName<T>(list: readonly { readonly name: string; readonly table: T }[]): ReadonlyMap<string, T> {
  return new Map(list.map(({ name, table }) => [name, table]));
}

/** Absent: no cluster has a table. */
export const CLUSTER_TABLES = z
  .array(z.object({ name: NAME, table: TABLE }))
  .max(MAX_CLUSTER_TABLES)
  .transform(byName)
  .optional();

/** An entry without `delta` and `table` is the table of the base. */
export const CLUSTER_TABLES_DELTA = z
  .array(z.object({ name: NAME, table: TABLE.optional(), delta: TABLE_DELTA.optional() }))
  .max(MAX_CLUSTER_TABLES)
  .optional();

const HASH_BYTES = 32;

/** A hash in base64. */
export const HASH = z
  .string()
  .transform((text) => Buffer.from(text, "base64"))
  .refine(({ length }) => length === HASH_BYTES);

export const CLUSTER_TABLE_HASHES = z
  .array(z.object({ name: NAME, tableHash: HASH }))
  .max(MAX_CLUSTER_TABLES)
  .optional();

function inOrder(tables: ClusterTables): [string, RouteTable][] {
  return [...tables].sort(([a], [b]) => (a < b ? -1 : 1));
}

export function clusterTablesToJson(tables: ClusterTables): string {
  const rows = inOrder(tables).map(([name, table]) => rowToJson(name, "table", Buffer.from(tableToBytes(table)).toString()));
  return `[${rows.join()}]`;
}

export function clusterTableHashes(tables: ClusterTables | undefined) {
  return tables && inOrder(tables).map(([name, table]) => ({ name, tableHash: tableHash(table).toString("base64") }));
}

/** In the form of CLUSTER_TABLES_DELTA. */
export function clusterTablesDelta(base: ClusterTables | undefined, next: ClusterTables): string {
  const rows = inOrder(next).map(([name, table]) => {
    const before = base?.get(name);
    if (before === table) return JSON.stringify({ name });
    const hasSameRules = before !== undefined && fixedPartsToJson(before) === fixedPartsToJson(table);
    const delta = hasSameRules ? diffTables(before, table) : undefined;
    return delta === undefined
      ? rowToJson(name, "table", Buffer.from(tableToBytes(table)).toString())
      : rowToJson(name, "delta", Buffer.from(delta).toString());
  });
  return `[${rows.join()}]`;
}

function rowToJson(name: string, key: "table" | "delta", json: string): string {
  return `{"name":${JSON.stringify(name)},"${key}":${json}}`;
}

/** @param problems receives every entry that does not fit the base. After a problem the result must not be used */
export function applyClusterTables(
  base: ClusterTables | undefined,
  rows: z.output<typeof CLUSTER_TABLES_DELTA>,
  problems: string[],
): ClusterTables | undefined {
  return (
    rows &&
    byName(
      rows.flatMap(({ name, table, delta }) => {
        const before = base?.get(name);
        if (table !== undefined) return { name, table };
        if (before === undefined) {
          problems.push(`clusterTables: "${name}" is not known`);
          return [];
        }
        return { name, table: delta === undefined ? before : applyDelta(before, delta, problems) };
      }),
    )
  );
}
