// Decodes what proxies say, a table that many hellos carry only once: after a manager's restart a thousand proxies bring the same few
// tables, hundreds of kilobytes each. Invariant: the message is what the contract's decoder gives; equal bytes of a table give the
// same object. What does not look as expected goes to that decoder as it is.
import { createHash } from "node:crypto";
import type { HelloMessage, ProxyMessage, RouteTableMessage, SnapshotMessage } from "../../wire/messages.ts";
import { createByteCache } from "./byte-cache.ts";
import { type Field, fieldsOf, LENGTH_DELIMITED, messageField } from "./protobuf-fields.ts";

const HELLO = 1; // of ProxyMessage
const ENFORCED = 5; // of Hello
const IN_DOUBT = 6; // of Hello
const TABLE = 8; // of Snapshot
// Short tables are decoded faster than they are looked up.
const MIN_BYTES = 1024;
const MAX_CACHED_BYTES = 16 * 1024 * 1024;

type Decode = (bytes: Buffer) => ProxyMessage;

/** @param decode the contract's own for ProxyMessage */
export function createHelloDecoder(decode: Decode): Decode {
  const tables = createByteCache<RouteTableMessage>(MAX_CACHED_BYTES);
  const tableOf = (bytes: Uint8Array): RouteTableMessage | null => {
    const key = createHash("sha256").update(bytes).digest("base64");
    const known = tables.get(key);
    if (known !== undefined) return known;
    const message = decode(messageField(HELLO, [messageField(ENFORCED, [messageField(TABLE, [bytes])])]));
    const table = "hello" in message ? (message.hello.enforced?.table ?? null) : null;
    if (table !== null) tables.set(key, table, bytes.length);
    return table;
  };

  return (bytes) => {
    if (bytes.length < MIN_BYTES) return decode(bytes);
    const taken = takeTablesOut(bytes);
    if (taken === undefined) return decode(bytes);
    const message = decode(taken.rest);
    if (!("hello" in message)) return decode(bytes);
    const [enforced, ...inDoubt] = taken.tables;
    const withTable = (snapshot: SnapshotMessage, table: Uint8Array | undefined): SnapshotMessage =>
      table === undefined ? snapshot : { ...snapshot, table: tableOf(table) };
    const hello: HelloMessage = {
      ...message.hello,
      enforced: message.hello.enforced && withTable(message.hello.enforced, enforced),
      inDoubt: message.hello.inDoubt.map((snapshot, index) => withTable(snapshot, inDoubt[index])),
    };
    return { ...message, hello };
  };
}

interface Taken {
  readonly rest: Buffer;
  /** That of `enforced`, then those of `in_doubt`. */
  readonly tables: readonly (Uint8Array | undefined)[];
}

function takeTablesOut(bytes: Uint8Array): Taken | undefined {
  const [hello, ...others] = fieldsOf(bytes) ?? [];
  if (hello?.number !== HELLO || hello.wireType !== LENGTH_DELIMITED || others.length > 0) return undefined;
  const fields = fieldsOf(hello.value);
  if (fields === undefined || fields.filter(({ number }) => number === ENFORCED).length > 1) return undefined;
  let enforced: Uint8Array | undefined;
  const inDoubt: (Uint8Array | undefined)[] = [];
  const rest: Uint8Array[] = [];
  for (const field of fields) {
    if (field.number !== ENFORCED && field.number !== IN_DOUBT) {
      rest.push(field.whole);
      continue;
    }
    if (field.wireType !== LENGTH_DELIMITED) return undefined;
    const taken = takeTableOut(field);
    if (taken === undefined) return undefined;
    rest.push(taken.rest);
    if (field.number === ENFORCED) enforced = taken.table;
    else inDoubt.push(taken.table);
  }
  return { rest: messageField(HELLO, rest), tables: [enforced, ...inDoubt] };
}

function takeTableOut(snapshot: Field): { rest: Buffer; table: Uint8Array | undefined } | undefined {
  const fields = fieldsOf(snapshot.value);
  const tables = fields?.filter(({ number }) => number === TABLE) ?? [];
  if (fields === undefined || tables.length > 1 || tables.some(({ wireType }) => wireType !== LENGTH_DELIMITED)) return undefined;
  const others = fields.filter(({ number }) => number !== TABLE).map(({ whole }) => whole);
  return { rest: messageField(snapshot.number, others), table: tables[0]?.value };
}
