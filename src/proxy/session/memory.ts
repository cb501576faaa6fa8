// What the layers keep over restarts of the proxy, in the snapshot file. Invariants: it is stored before the
// routes are acknowledged, and known before the first routes are announced.
import type { MovesMemory } from "../../mesh/moves/stored-moves.ts";

export interface ClosedGate {
  /** The lock's name upstream. */
  readonly lock: string;
  /** How long the lease of the earlier lock may last after its name was given up. */
  readonly leaseMs: number;
}

/** The lock of the last routes of a process. */
export interface StoredLock {
  readonly lockName: string;
  readonly subset: string;
  readonly closed: ClosedGate | undefined;
  /** The longest lease of that lock that was seen. */
  readonly longestLeaseMs: number | undefined;
}

export interface LockMemory {
  /** What the process before this one has left; undefined if there was none. */
  readonly before: StoredLock | undefined;
  keepGate(closed: ClosedGate | undefined): void;
  keepLease(longestLeaseMs: number | undefined): void;
}

/** Stores nothing, and has nothing from an earlier process. */
export const NO_MEMORY: { readonly lock: LockMemory; readonly moves: MovesMemory } = {
  lock: { before: undefined, keepGate: () => undefined, keepLease: () => undefined },
  moves: { before: undefined, keep: () => undefined },
};
