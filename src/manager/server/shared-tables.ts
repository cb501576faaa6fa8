// One route table object for equal contents: a thousand proxies of one app enforce the same table, and the
// planner reads each table object once. Invariants: a table is found only by the hash of its bytes, so no
// proxy speaks for another; an unused table is forgotten; the tables that pods have brought share a budget. A
// pod whose table is beyond the budget counts as one that may hold anything, which is safe.
import { type Clock, systemClock } from "../../base/clock.ts";
import { createFairBudget } from "../../base/fair-budget.ts";
import type { RouteTable } from "../../route/table.ts";
import { tableHash } from "../../wire/table-codec.ts";
import { createWeakIndex } from "./weak-index.ts";

export interface SharedTables {
  /** @param hash SHA-256 of a table's bytes, in base64 */
  get(hash: string): RouteTable | undefined;
  /** Returns the shared table: this one, which the manager has made, or an equal one. */
  share(table: RouteTable): RouteTable;
  /**
   * The same for a table that a pod of the namespace has brought; undefined if there is no room for it.
   * @param bytes its size in memory
   */
  bring(table: RouteTable, hash: string, namespace: string, bytes: number): RouteTable | undefined;
}

/**
 * The budget of the tables that pods have brought. The tables of 200 apps with 10,000 namespaces take 30 MB.
 * The pods of a namespace get at most half of what all others leave.
 */
const BROUGHT_BYTES = 32 * 1024 * 1024;
/** Longer than the history keeps the facts about a removed pod. */
const KEEP_UNUSED_MS = 120_000;
/** How often to check which tables pods may enforce: the cost grows with the pods. */
const CHECK_MS = 1_000;

/** A table that a pod has brought, and that the manager has not made itself. */
interface Charge {
  readonly namespace: string;
  readonly bytes: number;
  /** When a check first found that no pod may enforce the table. */
  unusedSinceMs?: number | undefined;
}

/** @param inUse returns the tables that pods may enforce */
export function createSharedTables(inUse: () => Iterable<RouteTable> = () => [], clock: Clock = systemClock): SharedTables {
  const { get, set } = createWeakIndex<RouteTable>();
  const hashes = new WeakMap<RouteTable, string>();
  const budget = createFairBudget(BROUGHT_BYTES);
  const charges = new Map<string, Charge>();
  let checkedMs = Number.NEGATIVE_INFINITY;

  const release = (hash: string) => {
    const charge = charges.get(hash);
    if (charge !== undefined) budget.give(charge.namespace, charge.bytes);
    charges.delete(hash);
  };
  const releaseUnused = () => {
    const nowMs = clock.monotonicMs();
    if (nowMs - checkedMs < CHECK_MS) return;
    checkedMs = nowMs;
    const usedHashes = new Set<string | undefined>();
    for (const table of inUse()) usedHashes.add(hashes.get(table));
    for (const [hash, charge] of charges) {
      charge.unusedSinceMs = usedHashes.has(hash) ? undefined : (charge.unusedSinceMs ?? nowMs);
      if (charge.unusedSinceMs !== undefined && nowMs - charge.unusedSinceMs >= KEEP_UNUSED_MS) release(hash);
    }
  };
  const mayBring = (hash: string, namespace: string, bytes: number): boolean => {
    releaseUnused();
    if (charges.has(hash)) return true;
    if (!budget.take(namespace, bytes)) return false;
    charges.set(hash, { namespace, bytes });
    return true;
  };

  return {
    get,
    share(table) {
      const hash = tableHash(table).toString("base64");
      release(hash);
      const knownTable = get(hash);
      if (knownTable === undefined) set(hash, table);
      return knownTable ?? table;
    },
    bring(table, hash, namespace, bytes) {
      const knownTable = get(hash);
      if (knownTable !== undefined) return knownTable;
      if (!mayBring(hash, namespace, bytes)) return undefined;
      hashes.set(table, hash);
      set(hash, table);
      return table;
    },
  };
}
