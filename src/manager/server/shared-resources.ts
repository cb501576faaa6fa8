// The tables and updates that many proxies share: each table is planned with once, each update encoded once.
// Invariants: a table is found only by the hash of its bytes, so no proxy speaks for another; unused tables
// and updates are forgotten; a pod whose table exceeds the budget counts as holding anything, which is safe.
import { type Clock, systemClock } from "../../base/clock.ts";
import { createFairBudget } from "../../base/fair-budget.ts";
import type { ManagerMessage, UpdateMessage } from "../../mesh/contract/messages.ts";
import { tableHash } from "../../mesh/contract/table-json.ts";
import type { Updates } from "../../mesh/link/delivery.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";

export type SharedTables = ReturnType<typeof createSharedTables>;

/**
 * Tables of 200 apps with 10,000 namespaces take 30 MB. A namespace gets at most half of what others leave.
 */
const BROUGHT_BYTES = 32 * 1024 * 1024;
/** Longer than the history keeps the facts of a removed pod. */
const KEEP_UNUSED_MS = 120_000;
const CHECK_MS = 1_000;

/** The cost of a table that a pod has sent, and that the manager has not made itself. */
interface Charge {
  readonly namespace: string;
  readonly bytes: number;
  /** Since when no pod may enforce the table. */
  unusedSinceMs?: number | undefined;
}

/** @param inUse returns the tables that pods may enforce */
export function createSharedTables(inUse: () => Iterable<RouteTable> = () => [], clock: Clock = systemClock) {
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
    /** @param hash SHA-256 of a table's bytes, in base64 */
    get,
    /** Returns this table, which the manager has made, or an equal one. */
    share(table: RouteTable): RouteTable {
      const hash = tableHash(table).toString("base64");
      release(hash);
      const knownTable = get(hash);
      if (knownTable === undefined) set(hash, table);
      return knownTable ?? table;
    },
    /**
     * Like `share`, for a table that a pod has sent; undefined if the budget is spent.
     * @param bytes in memory
     */
    bring(table: RouteTable, hash: string, namespace: string, bytes: number): RouteTable | undefined {
      const knownTable = get(hash);
      if (knownTable !== undefined) return knownTable;
      if (!mayBring(hash, namespace, bytes)) return undefined;
      hashes.set(table, hash);
      set(hash, table);
      return table;
    },
  };
}

export function createSharedUpdates(): Updates {
  const updates = createWeakIndex<UpdateMessage>();
  const newestNonces = new Map<string, number>();
  const get: Updates["get"] = (type, base, next, lastNonce) => {
    const key = [type.name, base?.digest ?? "", next.digest, next.version].join(" ");
    const shared = updates.get(key);
    if (shared !== undefined && shared.nonce > lastNonce) return shared;
    const update = make(type, base, next, lastNonce);
    updates.set(key, update);
    return update;
  };
  const make: Updates["get"] = (type, base, next, lastNonce) => {
    const body = base === undefined ? type.encode(next) : type.delta?.encode(base, next);
    if (body === undefined) return get(type, undefined, next, lastNonce);
    const nonce = (newestNonces.get(type.name) ?? 0) + 1;
    newestNonces.set(type.name, nonce);
    const { version, digest } = next;
    return { nonce, resource: { type: type.name, version, digest, body }, baseDigest: base?.digest ?? "" };
  };
  return { get };
}

export function encodeUpdatesOnce(encode: (message: ManagerMessage) => Buffer): (message: ManagerMessage) => Buffer {
  const encoded = new WeakMap<UpdateMessage, Buffer>();
  return (message) => {
    if (!("update" in message)) return encode(message);
    const bytes = encoded.get(message.update) ?? encode(message);
    encoded.set(message.update, bytes);
    return bytes;
  };
}

/** Values by key. Invariant: the index forgets each value that nobody else references. */
export type WeakIndex<T extends object> = ReturnType<typeof createWeakIndex<T>>;

const FIRST_SWEEP = 64;

export function createWeakIndex<T extends object>() {
  const refs = new Map<string, WeakRef<T>>();
  let sweepAt = FIRST_SWEEP;
  return {
    get: (key: string): T | undefined => refs.get(key)?.deref(),
    set(key: string, value: T): void {
      refs.set(key, new WeakRef(value));
      if (refs.size < sweepAt) return;
      for (const [other, ref] of refs) if (ref.deref() === undefined) refs.delete(other);
      sweepAt = Math.max(FIRST_SWEEP, refs.size * 2);
    },
    /** Includes keys that have lost their values since the last sweep. */
    get size(): number {
      return refs.size;
    },
  };
}
