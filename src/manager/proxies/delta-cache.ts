// The differences between snapshots, each computed once however many proxies are sent it. Bounded. Invariant: a difference is given only
// to who holds the very table from which it was computed: a proxy that names a digest over another table spoils nobody else's. Used by
// the proxy registry, whose interner gives equal tables as one.
import type { Snapshot } from "../../route/snapshot.ts";
import type { RouteTable } from "../../route/table.ts";
import { diffSnapshots, type SnapshotDelta } from "../../wire/snapshot-delta.ts";

export interface DeltaCache {
  /** Undefined if the whole has to be sent. */
  between(base: Snapshot, next: Snapshot): SnapshotDelta | undefined;
}

// A delta is used within the milliseconds in which an app's proxies are told; more pairs than these are of many apps at once.
const MAX_DELTAS = 128;

export function createDeltaCache(): DeltaCache {
  const deltas = new Map<string, { readonly of: RouteTable; readonly delta: SnapshotDelta | undefined }>();
  return {
    between(base, next) {
      const key = `${base.digest} ${next.digest} ${next.version}`;
      const known = deltas.get(key);
      if (known?.of === base.table) return known.delta;
      const delta = diffSnapshots(base, next);
      const [oldest] = deltas.keys();
      if (deltas.size >= MAX_DELTAS && oldest !== undefined) deltas.delete(oldest);
      deltas.set(key, { of: base.table, delta });
      return delta;
    },
  };
}
