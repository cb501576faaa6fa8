// A route table as the bytes that a registration names by their hash, and a manager may ask for. Invariant: the same table object gives the same
// bytes each time. The hash is kept as long as the table, the bytes, hundreds of kilobytes, are made anew: hardly one proxy of a
// thousand is asked for them. Used by the session for its registrations.
import { createHash } from "node:crypto";
import type { RouteTable } from "../../route/table.ts";
import type { RouteTableCodec } from "../../wire/load-proto.ts";
import { canonicalTableToWire } from "../../wire/snapshot-codec.ts";

export interface TableBytes {
  /** SHA-256 of what `encode` gives. */
  hashOf(table: RouteTable): Buffer;
  encode(table: RouteTable): Uint8Array;
}

export function createTableBytes(codec: Pick<RouteTableCodec, "encode">): TableBytes {
  const hashes = new WeakMap<RouteTable, Buffer>();
  const encode = (table: RouteTable) => codec.encode(canonicalTableToWire(table));
  return {
    hashOf(table) {
      let hash = hashes.get(table);
      if (hash === undefined) {
        hash = createHash("sha256").update(encode(table)).digest();
        hashes.set(table, hash);
      }
      return hash;
    },
    encode,
  };
}
