// The route as a resource type. `routeToWire` and `routeFromWire` are the only lists of a route's fields:
// digest, deltas, registrations and the stored file all use the message. Invariant: a route that decodes
// without an error can be enforced; otherwise the error names every problem.
import { isDeepStrictEqual } from "node:util";
import type { ResourceMessage, RouteMessage } from "../mesh/contract/messages.ts";
import {
  digestOf,
  headProblems,
  ResourceInvalidError,
  type ResourceType,
  type Versioned,
} from "../mesh/contract/resource-type.ts";
import { NO_CALLER_POLICY, type Snapshot } from "../mesh/ownership/snapshot.ts";
import type { RouteTable } from "../mesh/ownership/table.ts";
import { fieldWithLength } from "./class-bytes.ts";
import { ROUTE_DELTA_MESSAGE, ROUTE_MESSAGE } from "./load-proto.ts";
import { fixedTableToWire, tableFromWire, tableHash, tableToBytes } from "./table-codec.ts";
import { applyDelta, diffTables } from "./table-delta.ts";

/** A route without version and digest. */
export type RouteContent = Omit<Snapshot, keyof Versioned>;

export const ROUTE: ResourceType<Snapshot> = {
  name: "route",
  encode(snapshot) {
    const others = ROUTE_MESSAGE.encode({ ...routeToWire(snapshot), table: null, tableHash: NO_HASH });
    return Buffer.concat([others, ...fieldWithLength(TABLE_FIELD, tableToBytes(snapshot.table))]);
  },
  decode(body, head) {
    const message = messageOf(body);
    return routeFromWire(message, head, (problems) => message.table && tableFromWire(message.table, problems));
  },
  delta: {
    capability: "route-delta",
    encode(base, next) {
      return hasSameFixedParts(base, next) ? diffTables(base.table, next.table) : undefined;
    },
    apply(base, body, { version, digest }) {
      const problems = headProblems({ version, digest });
      const table = applyDelta(base.table, ROUTE_DELTA_MESSAGE.decode(body), problems);
      if (problems.length > 0) throw new ResourceInvalidError(problems);
      return { ...base, version, digest, table };
    },
  },
};

/**
 * The digest of what a route decides. The words of its messages are not part of it: a proxy of an older
 * version does not know them, and would claim another digest than it was sent.
 */
export function routeDigest({ words: _, ...content }: RouteContent): string {
  return digestOf(namedBody(content));
}

/** The route in a registration: with the hash of its table instead of the table. */
export function namedRoute(snapshot: Snapshot): ResourceMessage {
  return { type: ROUTE.name, version: snapshot.version, digest: snapshot.digest, body: namedBody(snapshot) };
}

export interface ClaimedRoute {
  /** The hash of the table; undefined if the body has none. */
  readonly tableHash: Uint8Array | undefined;
  /**
   * The digest is computed, so a proxy cannot claim the digest of other rules.
   * @throws ResourceInvalidError
   */
  withTable(table: RouteTable | undefined): Snapshot;
}

/** Decodes a route of a registration. If that fails, the result has no table hash. */
export function claimedRoute({ body, version }: ResourceMessage): ClaimedRoute {
  const message = decodedOrUndefined(body);
  return {
    tableHash: message?.tableHash.length === HASH_BYTES ? message.tableHash : undefined,
    withTable(table) {
      if (message === undefined) throw new ResourceInvalidError(["body: not readable"]);
      const content = routeFromWire(message, { version, digest: "computed below" }, () => table);
      return { ...content, digest: routeDigest(content) };
    },
  };
}

/** The number of the field `table` of the message Route. */
const TABLE_FIELD = 6;
const HASH_BYTES = 32;
const NO_HASH = new Uint8Array();

function routeToWire(content: RouteContent): Omit<RouteMessage, "table" | "tableHash"> {
  const { app, subset, podNamespace, lockName, callers, guard, words = null } = content;
  return { app, subset, podNamespace, lockName, callers, words, warnOnly: guard === "Warn" };
}

function routeFromWire(
  message: RouteMessage,
  { version, digest }: Versioned,
  readTable: (problems: string[]) => RouteTable | null | undefined,
): Snapshot {
  const { app, subset, podNamespace, lockName, callers, warnOnly, words } = message;
  const problems = headProblems({ version, digest });
  if (app === null || app.name === "") problems.push("app: missing");
  if (podNamespace === "") problems.push("podNamespace: missing");
  const table = readTable(problems);
  if (!table) problems.push("table: missing");
  if (problems.length > 0 || !table || app === null) throw new ResourceInvalidError(problems);
  const content = { app, subset, podNamespace, lockName, table, callers: callers ?? NO_CALLER_POLICY };
  return { version, digest, ...content, ...(warnOnly ? { guard: "Warn" } : {}), ...(words && { words }) };
}

function namedBody(content: RouteContent): Uint8Array {
  return ROUTE_MESSAGE.encode({ ...routeToWire(content), table: null, tableHash: tableHash(content.table) });
}

/** True if the two differ only in what a delta can change. */
function hasSameFixedParts(base: Snapshot, next: Snapshot): boolean {
  if (!isDeepStrictEqual(routeToWire(base), routeToWire(next))) return false;
  const [a, b] = [base.table, next.table];
  const isSame = a.rules === b.rules && a.sharedResources === b.sharedResources && a.retained === b.retained;
  return isSame || isDeepStrictEqual(fixedTableToWire(a), fixedTableToWire(b));
}

function messageOf(body: Uint8Array): RouteMessage {
  try {
    return ROUTE_MESSAGE.decode(body);
  } catch (cause) {
    throw new ResourceInvalidError([`body: ${cause instanceof Error ? cause.message : String(cause)}`]);
  }
}

/** The maximum memory of a route without its table, whose largest part is the list of user agents. */
const MAX_CLAIM_SIZE = 256 * 1024;

function decodedOrUndefined(body: Uint8Array): RouteMessage | undefined {
  try {
    return ROUTE_MESSAGE.decode(body, { left: MAX_CLAIM_SIZE });
  } catch {
    return undefined;
  }
}
