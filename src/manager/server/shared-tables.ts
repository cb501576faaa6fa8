// One route table object for equal contents: a thousand proxies of one app hold the same table, and the
// planner reads each table object once. Invariant: a table is found by the hash of its bytes alone, so that
// no proxy speaks for another. Tables that nobody uses any more are forgotten, and those that pods have
// brought have a budget. Used by the proxy registry and by registration-tables.ts.
import { type Clock, systemClock } from "../../base/clock.ts";
import type { RouteTable } from "../../route/table.ts";
import { tableHash } from "../../wire/table-codec.ts";
import { createForeignBudget } from "./foreign-budget.ts";
import { createWeakIndex } from "./weak-index.ts";

export interface SharedTables {
  /** @param hash SHA-256 of a table's bytes, in base64 */
  get(hash: string): RouteTable | undefined;
  /** The table that is shared from now on: this one, which the manager has made, or an equal one. */
  share(table: RouteTable): RouteTable;
  /**
   * The same for a table that a pod of the namespace has brought; undefined if there is no room for it.
   * @param bytes what it takes in memory
   */
  bring(table: RouteTable, hash: string, namespace: string, bytes: number): RouteTable | undefined;
}

/** @param held the tables that pods may enforce */
export function createSharedTables(held: () => Iterable<RouteTable> = () => [], clock: Clock = systemClock): SharedTables {
  const { get, set } = createWeakIndex<RouteTable>();
  const brought = new WeakMap<RouteTable, string>();
  function* heldKeys(): Iterable<string> {
    for (const table of held()) {
      const key = brought.get(table);
      if (key !== undefined) yield key;
    }
  }
  const budget = createForeignBudget(heldKeys, clock);
  return {
    get,
    share(table) {
      const hash = tableHash(table).toString("base64");
      budget.release(hash);
      const known = get(hash);
      if (known === undefined) set(hash, table);
      return known ?? table;
    },
    bring(table, hash, namespace, bytes) {
      const known = get(hash);
      if (known !== undefined) return known;
      if (!budget.take(hash, namespace, bytes)) return undefined;
      brought.set(table, hash);
      set(hash, table);
      return table;
    },
  };
}
