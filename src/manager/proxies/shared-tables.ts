// One route table object for equal contents: a thousand proxies of one app hold the same table, and the planner reads each table object
// once. Invariant: a table is found by the hash of its bytes alone, so that no proxy speaks for another. Tables that nobody uses any more
// are forgotten. Used by the proxy registry and by registration-tables.ts.
import type { RouteTable } from "../../route/table.ts";
import { tableHash } from "../../wire/table-codec.ts";
import { createWeakIndex } from "./weak-index.ts";

export interface SharedTables {
  /** @param hash SHA-256 of a table's bytes, in base64 */
  get(hash: string): RouteTable | undefined;
  /** The table that is shared under the hash from now on: this one, or an equal one. */
  share(table: RouteTable, hash?: string): RouteTable;
}

export function createSharedTables(): SharedTables {
  const { get, set } = createWeakIndex<RouteTable>();
  return {
    get,
    share(table, hash = tableHash(table).toString("base64")) {
      const known = get(hash);
      if (known === undefined) set(hash, table);
      return known ?? table;
    },
  };
}
