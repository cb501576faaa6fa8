// What a proxy sends first on a stream: who it is, what it supports, and every route that it may be
// enforcing, tables by hash. The Welcome asks for the tables that the manager does not know. Pure. Invariant:
// the manager grants by it, so it never claims less than the proxy may hold; and the tables are those that
// the registration has named, whatever the proxy holds by then.
import type { RouteTable } from "../../route/table.ts";
import type { PodRef, RegistrationMessage } from "../../wire/messages.ts";
import { namedRoute } from "../../wire/route-type.ts";
import { tableHash, tableToBytes } from "../../wire/table-codec.ts";
import { type Claims, MAX_IN_DOUBT } from "./route-handler.ts";

export interface RegistrationFacts {
  readonly pod: PodRef;
  readonly proxyVersion: string;
  readonly capabilities: readonly string[];
  /** Number of the stream; see stream-ledger.ts. */
  readonly streamNumber: number;
  /** The highest epoch that the proxy has promised to follow; 0 if none. */
  readonly epoch: number;
  /** Version of the snapshot in force; 0 if there is none. */
  readonly version: number;
  readonly claims: Claims;
}

export interface Greeting {
  readonly registration: RegistrationMessage;
  /** The bytes of those tables of the registration whose hashes these are. */
  tablesFor(hashes: readonly Uint8Array[]): Uint8Array[];
}

export function greetingOf({ claims, version, ...facts }: RegistrationFacts): Greeting {
  const { acknowledged, inDoubt, mayHoldMore } = claims;
  const newest = inDoubt.at(-1);
  const isMany = inDoubt.length > MAX_IN_DOUBT;
  const named = isMany && newest !== undefined ? [newest] : inDoubt;
  // Equal tables once: a table can come back under a newer version, and a manager reads no more tables than
  // it has asked for.
  const byHash = new Map<string, RouteTable>();
  for (const { table } of [...(acknowledged === undefined ? [] : [acknowledged]), ...named]) {
    byHash.set(tableHash(table).toString("base64"), table);
  }
  const tables = [...byHash.values()];
  return {
    registration: {
      ...facts,
      route: {
        version,
        acknowledged: acknowledged === undefined ? null : namedRoute(acknowledged),
        inDoubt: named.map(namedRoute),
        mayHoldMore: mayHoldMore || isMany,
      },
    },
    tablesFor: (hashes) =>
      tables.filter((table) => hashes.some((hash) => tableHash(table).equals(hash))).map((table) => tableToBytes(table)),
  };
}
