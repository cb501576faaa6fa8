// One route table for equal contents: a thousand proxies of one app hold the same table, and the handover reads each table once by
// its identity. Invariant: what a proxy says is shared with others only if its digest is right: a proxy cannot speak for another.
// Tables that nobody holds any more are forgotten. Used by the proxy registry.
import type { Snapshot } from "../../route/snapshot.ts";
import type { RouteTable } from "../../route/table.ts";
import type { RouteTableMessage, SnapshotMessage } from "../../wire/messages.ts";
import { snapshotFromWire } from "../../wire/snapshot-codec.ts";
import { rulesOf } from "../plan/snapshots.ts";

export interface TableInterner {
  /** The manager's own snapshot, whose digest is right. */
  own(snapshot: Snapshot): Snapshot;
  /** What a proxy says that it holds; undefined if it cannot be read. */
  told(message: SnapshotMessage): Snapshot | undefined;
}

const NO_TABLE: RouteTableMessage = { rules: [], classes: [], sharedResources: [], fenced: [] };
const FIRST_SWEEP = 64;

export function createTableInterner(): TableInterner {
  const byDigest = new Map<string, WeakRef<RouteTable>>();
  // Tables that registrations name by equal hashes are the same message (registration-tables.ts).
  const byMessage = new WeakMap<RouteTableMessage, RouteTable>();
  let sweepAt = FIRST_SWEEP;

  const share = (snapshot: Snapshot): Snapshot => {
    const known = byDigest.get(snapshot.digest)?.deref();
    if (known === snapshot.table) return snapshot;
    if (known !== undefined) return { ...snapshot, table: known };
    byDigest.set(snapshot.digest, new WeakRef(snapshot.table));
    if (byDigest.size >= sweepAt) {
      for (const [digest, table] of byDigest) if (table.deref() === undefined) byDigest.delete(digest);
      sweepAt = Math.max(FIRST_SWEEP, byDigest.size * 2);
    }
    return snapshot;
  };

  return {
    own: share,
    told(message) {
      try {
        const { table } = message;
        const known = table === null ? undefined : byMessage.get(table);
        if (known !== undefined) return { ...snapshotFromWire({ ...message, table: NO_TABLE }), table: known };
        const decoded = snapshotFromWire(message);
        const shared = rulesOf(decoded).digest === decoded.digest ? share(decoded) : decoded;
        if (table !== null) byMessage.set(table, shared.table);
        return shared;
      } catch {
        return undefined;
      }
    },
  };
}
