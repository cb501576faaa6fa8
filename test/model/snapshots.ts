// Equal snapshots and tables of a model are one object each, as the manager's shared tables are: planning remembers by object.

import { tableHash } from "../../src/mesh/contract/table-json.ts";
import type { Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import type { RouteTable } from "../../src/mesh/ownership/table.ts";

const tables = new Map<string, RouteTable>();
const snapshots = new Map<string, Snapshot>();

export function intern(snapshot: Snapshot): Snapshot {
  const key = `${snapshot.digest} ${snapshot.version}`;
  const known = snapshots.get(key);
  if (known !== undefined) return known;
  const hash = textOf(tableHash(snapshot.table));
  const table = tables.get(hash) ?? snapshot.table;
  tables.set(hash, table);
  const made = { ...snapshot, table };
  snapshots.set(key, made);
  return made;
}

export function tableByHash(hash: Uint8Array): RouteTable | undefined {
  return tables.get(textOf(hash));
}

function textOf(hash: Uint8Array): string {
  return Buffer.from(hash).toString("base64");
}
