// Encodes the rows of `classes` of a RouteTable or RouteDelta, which are nearly all of its bytes: 10,000
// namespaces take about a millisecond, and ten with the general encoder. Invariant: the bytes are those of the
// general encoder, because the hash of a table is that of its bytes.

import type { NamespaceClassMessage } from "../mesh/contract/messages.ts";
import { ROUTE_TABLE_MESSAGE } from "./load-proto.ts";

/** The number of the field `namespaces` of NamespaceClass. */
const NAMESPACES_FIELD = 2;
const NAMESPACES_TAG = tagOf(NAMESPACES_FIELD);
const MAX_SHORT_LENGTH = 0x7f;
const NO_TABLE = { rules: [], classes: [], sharedResources: [], fenced: [], retained: [] };

/** @param field the number of the field `classes` */
export function classesToBytes(field: number, rows: readonly NamespaceClassMessage[]): Uint8Array {
  return Buffer.concat(rows.flatMap((row) => fieldWithLength(field, rowToBytes(row))));
}

/** The bytes of a field of a message, to be joined. @param number below 16 */
export function fieldWithLength(number: number, value: Uint8Array): [Uint8Array, Uint8Array] {
  const head = [tagOf(number)];
  let left = value.length;
  for (; left > MAX_SHORT_LENGTH; left >>>= 7) head.push((left & MAX_SHORT_LENGTH) | (MAX_SHORT_LENGTH + 1));
  return [Uint8Array.from([...head, left]), value];
}

function tagOf(number: number): number {
  return (number << 3) | 2;
}

function rowToBytes({ rules, namespaces }: NamespaceClassMessage): Uint8Array {
  const general = (names: readonly string[]) =>
    bodyOf(ROUTE_TABLE_MESSAGE.encode({ ...NO_TABLE, classes: [{ rules, namespaces: names }] }));
  const head = general([]);
  const bytes = Buffer.allocUnsafe(namespaces.reduce((sum, name) => sum + 2 + name.length, head.length));
  let at = head.copy(bytes);
  for (const name of namespaces) {
    if (name.length > MAX_SHORT_LENGTH) return general(namespaces);
    bytes[at++] = NAMESPACES_TAG;
    bytes[at++] = name.length;
    for (let index = 0; index < name.length; index++) {
      const code = name.charCodeAt(index);
      if (code > MAX_SHORT_LENGTH) return general(namespaces);
      bytes[at++] = code;
    }
  }
  return bytes;
}

/** A row without its tag and length. */
function bodyOf(row: Buffer): Buffer {
  let at = 1;
  while ((row[at] ?? 0) > MAX_SHORT_LENGTH) at++;
  return row.subarray(at + 1);
}
