// What a proxy sends first on a stream: who it is, and every route that it may be enforcing, with tables by
// hash. The Welcome asks for the tables that the manager does not know. Pure. Invariant: the manager grants
// by it, so it never claims less than the proxy may hold, and is never read as less.

import type { RegistrationMessage, ResourceMessage, RouteClaimsMessage } from "../contract/messages.ts";
import { namedRoute } from "../contract/route-type.ts";
import { tableHash, tableToBytes } from "../contract/table-json.ts";
import { type Snapshot, tablesIn } from "../ownership/snapshot.ts";
import type { RouteTable } from "../ownership/table.ts";
import type { Claims } from "./held-claims.ts";
import type { RouteClaims } from "./proxy-record.ts";
import { MAX_IN_DOUBT } from "./proxy-routes.ts";

export interface RegistrationFacts extends Omit<RegistrationMessage, "route"> {
  /** Of the snapshot in force; 0 if there is none. */
  readonly version: number;
  readonly claims: Claims;
}

export interface Greeting {
  readonly registration: RegistrationMessage;
  /** Tables that the registration has named, as bytes, whatever the proxy holds by then. */
  tablesFor(hashes: readonly Uint8Array[]): Uint8Array[];
}

export function greetingOf({ claims, version, ...facts }: RegistrationFacts): Greeting {
  const { acknowledged, inDoubt, mayHoldMore } = claims;
  const newest = inDoubt.at(-1);
  const isMany = inDoubt.length > MAX_IN_DOUBT;
  const named = isMany && newest !== undefined ? [newest] : inDoubt;
  // Equal tables once: a table can come back under a newer version.
  const byHash = new Map<string, RouteTable>();
  for (const route of [...(acknowledged === undefined ? [] : [acknowledged]), ...named]) {
    for (const table of tablesIn(route)) byHash.set(tableHash(table).toString("base64"), table);
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

/** @param routeOf undefined for a route whose table is not known: then the proxy may hold anything */
export function claimsFrom(
  message: RouteClaimsMessage | null,
  routeOf: (named: ResourceMessage) => Snapshot | undefined,
): RouteClaims {
  const acknowledged = message?.acknowledged ? routeOf(message.acknowledged) : undefined;
  const inDoubt = message?.inDoubt.map(routeOf) ?? [];
  const version = message?.version ?? 0;
  const holdsSomething = Boolean(message?.acknowledged) || version > 0;
  const isMissing = inDoubt.includes(undefined) || (holdsSomething && acknowledged === undefined);
  return {
    version,
    acknowledged,
    inDoubt: inDoubt.filter((route) => route !== undefined),
    mayHoldMore: message?.mayHoldMore === true || isMissing,
  };
}
