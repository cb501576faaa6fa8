// The differences between snapshots, each computed once however many proxies are sent it. Bounded. Used by the proxy registry.
import type { Snapshot } from "../../route/snapshot.ts";
import { diffSnapshots, type SnapshotDelta } from "../../wire/snapshot-delta.ts";

export interface DeltaCache {
  /** Undefined if the whole has to be sent. */
  between(base: Snapshot, next: Snapshot): SnapshotDelta | undefined;
}

// A delta is used within the milliseconds in which an app's proxies are told; more pairs than these are of many apps at once.
const MAX_DELTAS = 128;

export function createDeltaCache(): DeltaCache {
  const deltas = new Map<string, SnapshotDelta | undefined>();
  return {
    between(base, next) {
      const key = `${base.digest} ${next.digest} ${next.version}`;
      if (deltas.has(key)) return deltas.get(key);
      const delta = diffSnapshots(base, next);
      const [oldest] = deltas.keys();
      if (deltas.size >= MAX_DELTAS && oldest !== undefined) deltas.delete(oldest);
      deltas.set(key, delta);
      return delta;
    },
  };
}
