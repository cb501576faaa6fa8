// What the tables that pods have brought may take together, in bytes. Invariants: a namespace's pods get at
// most half of what all others leave, so that no tenant takes the room of the others; a table that the
// manager has made itself costs nothing; what nobody holds any more is given back. Beyond the budget a pod
// counts as one that may hold anything, which is safe. Used by shared-tables.ts.
import type { Clock } from "../../base/clock.ts";

/** The tables of 200 apps with 10,000 namespaces take 30 MB. */
const TOTAL_BYTES = 32 * 1024 * 1024;
/** Longer than the history keeps the facts about a removed pod. */
const KEEP_MS = 120_000;
/** How often to check which tables pods hold: the cost grows with the pods. */
const LOOK_MS = 1_000;

interface Charge {
  readonly namespace: string;
  readonly bytes: number;
  /** When a check first found that no pod holds the table. */
  unheldSinceMs?: number | undefined;
}

export interface ForeignBudget {
  /** True if the table fits; then it counts. @param key names the table */
  take(key: string, namespace: string, bytes: number): boolean;
  /** The manager has made the table itself. */
  release(key: string): void;
}

/** @param held the keys of the tables that pods hold */
export function createForeignBudget(held: () => Iterable<string>, clock: Clock, totalBytes = TOTAL_BYTES): ForeignBudget {
  const charges = new Map<string, Charge>();
  let lookedMs = Number.NEGATIVE_INFINITY;

  const giveBack = () => {
    const nowMs = clock.monotonicMs();
    if (nowMs - lookedMs < LOOK_MS) return;
    lookedMs = nowMs;
    const inUse = new Set(held());
    for (const [key, charge] of charges) {
      charge.unheldSinceMs = inUse.has(key) ? undefined : (charge.unheldSinceMs ?? nowMs);
      if (charge.unheldSinceMs !== undefined && nowMs - charge.unheldSinceMs >= KEEP_MS) charges.delete(key);
    }
  };
  const sum = (isCounted: (charge: Charge) => boolean) =>
    [...charges.values()].reduce((bytes, charge) => bytes + (isCounted(charge) ? charge.bytes : 0), 0);

  return {
    take(key, namespace, bytes) {
      giveBack();
      if (charges.has(key)) return true;
      const own = sum((charge) => charge.namespace === namespace);
      const others = sum((charge) => charge.namespace !== namespace);
      if (own + bytes > (totalBytes - others) / 2) return false;
      charges.set(key, { namespace, bytes });
      return true;
    },
    release: (key) => void charges.delete(key),
  };
}
