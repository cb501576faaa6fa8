// The tables that registrations name by hash. After a failover a thousand proxies name the same few large
// tables, so only a few are asked for each. Invariants: a table's hash is computed from the received bytes;
// only tables that were asked of the stream are read; a silent proxy delays the others only briefly.
import type { MemoryBudget } from "../../base/bounded-json.ts";
import type { Clock } from "../../base/clock.ts";
import type { ResourceMessage, RouteClaimsMessage } from "../../mesh/contract/messages.ts";
import { MAX_BODY_MEMORY } from "../../mesh/contract/resource-type.ts";
import { type ClaimedRoute, claimedRoute } from "../../mesh/contract/route-type.ts";
import { hashBytes } from "../../mesh/contract/table-json.ts";
import type { RouteClaims } from "../../mesh/link/proxy-record.ts";
import { claimsFrom } from "../../mesh/link/registration.ts";
import type { Snapshot } from "../../mesh/ownership/snapshot.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";
import { readForeignTable } from "./foreign-table.ts";
import { createKnownNames } from "./known-namespaces.ts";
import type { SharedTables } from "./shared-resources.ts";

export type RegistrationTables = ReturnType<typeof createRegistrationTables>;

export interface StreamTables {
  /** The hashes to ask of this stream; undefined if it has to wait for other streams, as `mayWait` allows. */
  ask(claims: RouteClaimsMessage | null, mayWait: boolean): readonly Uint8Array[] | undefined;
  /** Takes tables that are within their bounds and for which there is room. @param namespace of the pod */
  take(tables: readonly Uint8Array[], namespace: string): void;
  /** A claim whose table is not known sets `mayHoldMore`. */
  resolve(claims: RouteClaimsMessage | null): RouteClaims;
  close(): void;
}

/** A route of an app with MAX_CLUSTER_TABLES clusters has 33 tables, of which most are known. */
const MAX_ASKED = 48;
/**
 * At first two streams are asked for a table. After each period without the table, four times as many are.
 */
const ASKED_AT_FIRST = 2;
const ASKED_FACTOR = 4;
const PERIOD_MS = 500;

export function createRegistrationTables(options: {
  readonly clock: Clock;
  readonly tables: SharedTables;
  readonly namespaces?: (() => readonly string[]) | undefined;
}) {
  const { clock, tables, namespaces } = options;
  const names = namespaces && createKnownNames(namespaces, clock);
  /** By hash: the streams that were asked, and the time of the first request. */
  const pending = new Map<string, { readonly sinceMs: number; readonly streams: Set<StreamTables> }>();

  const mayBeAsked = (hash: string): boolean => {
    const request = pending.get(hash);
    if (request === undefined) return true;
    const periods = Math.floor((clock.monotonicMs() - request.sinceMs) / PERIOD_MS);
    return request.streams.size < ASKED_AT_FIRST * ASKED_FACTOR ** periods;
  };

  return {
    open(): StreamTables {
      /** By hash. They stay in memory until the proxy is registered. */
      const foundTables = new Map<string, RouteTable>();
      const askedHashes = new Set<string>();
      /** Each claim is decoded once, although `ask` and `resolve` may run several times. */
      const decoded = new Map<ResourceMessage, ClaimedRoute>();
      const memory: MemoryBudget = { left: MAX_BODY_MEMORY };

      const find = (hash: string): RouteTable | undefined => {
        const table = foundTables.get(hash) ?? tables.get(hash);
        if (table !== undefined) foundTables.set(hash, table);
        return table;
      };
      const claimIn = (resource: ResourceMessage): ClaimedRoute => {
        const claim = decoded.get(resource) ?? claimedRoute(resource);
        decoded.set(resource, claim);
        return claim;
      };
      const routeOf = (resource: ResourceMessage): Snapshot | undefined => {
        try {
          return claimIn(resource).withTables((hash) => find(textOf(hash)));
        } catch {
          return undefined;
        }
      };
      const self: StreamTables = {
        ask(claims, mayWait) {
          const missing = new Map<string, Uint8Array>();
          for (const hash of claimsIn(claims).flatMap((resource) => claimIn(resource).tableHashes)) {
            if (missing.size < MAX_ASKED && find(textOf(hash)) === undefined) missing.set(textOf(hash), hash);
          }
          if (mayWait && ![...missing.keys()].every(mayBeAsked)) return undefined;
          for (const hash of missing.keys()) {
            askedHashes.add(hash);
            const request = pending.get(hash) ?? { sinceMs: clock.monotonicMs(), streams: new Set() };
            pending.set(hash, request);
            request.streams.add(self);
          }
          return [...missing.values()];
        },
        take(received, namespace) {
          for (const bytes of received.slice(0, askedHashes.size)) {
            const hash = textOf(hashBytes(bytes));
            if (!askedHashes.has(hash) || find(hash) !== undefined) continue;
            const read = readForeignTable(bytes, memory, names?.());
            const table = read && tables.bring(read.table, hash, namespace, read.bytes);
            if (table !== undefined) foundTables.set(hash, table);
          }
        },
        resolve: (claims) => claimsFrom(claims, routeOf),
        close() {
          foundTables.clear();
          decoded.clear();
          for (const hash of askedHashes) {
            const streams = pending.get(hash)?.streams;
            if (streams?.delete(self) && streams.size === 0) pending.delete(hash);
          }
          askedHashes.clear();
        },
      };
      return self;
    },
  };
}

export function claimsIn(claims: RouteClaimsMessage | null): readonly ResourceMessage[] {
  if (claims === null) return [];
  return [claims.acknowledged, ...claims.inDoubt].filter((claim) => claim !== null);
}

function textOf(hash: Uint8Array): string {
  return Buffer.from(hash.buffer, hash.byteOffset, hash.length).toString("base64");
}
