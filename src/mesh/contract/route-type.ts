// The route as a resource type, in JSON. `contentOf` and `CONTENT` are the only lists of a route's fields:
// digest, deltas, registrations and the stored file all use them. Invariant: a route that decodes without an
// error can be enforced; otherwise the error names every problem.
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import type { ClusterRoute } from "../ownership/clusters.ts";
import type { Snapshot } from "../ownership/snapshot.ts";
import type { RouteTable } from "../ownership/table.ts";
import {
  applyClusterTables,
  CLUSTER_TABLE_HASHES,
  CLUSTER_TABLES,
  CLUSTER_TABLES_DELTA,
  clusterTableHashes,
  clusterTablesDelta,
  clusterTablesToJson,
  HASH,
  TABLE,
} from "./cluster-tables.ts";
import type { ResourceMessage } from "./messages.ts";
import {
  checkJson,
  decodeJson,
  digestOf,
  headProblems,
  parseBody,
  ResourceInvalidError,
  type ResourceType,
  type Versioned,
} from "./resource-type.ts";
import { applyDelta, diffTables, TABLE_DELTA } from "./table-delta.ts";
import { canonicalJson, fixedPartsToJson, tableHash, tableToBytes } from "./table-json.ts";
import { NAMES } from "./table-schema.ts";

/** A route without version and digest. */
export type RouteContent = Omit<Snapshot, keyof Versioned | "inside">;

export const ROUTE: ResourceType<Snapshot> = {
  name: "routes",
  encode: (snapshot) =>
    Buffer.concat([
      Buffer.from(`${canonicalJson(contentOf(snapshot)).slice(0, -1)},"table":`),
      tableToBytes(snapshot.table),
      Buffer.from(snapshot.clusterTables ? `,"clusterTables":${clusterTablesToJson(snapshot.clusterTables)}}` : "}"),
    ]),
  decode: (body, head) => routeFromJson(parseBody(body, head), head),
  delta: {
    capability: "routes-delta",
    encode(base, next) {
      if (!hasSameFixedParts(base, next)) return undefined;
      const table = diffTables(base.table, next.table);
      if (table === undefined) return undefined;
      const lists = JSON.stringify({ frozen: next.frozen, clusters: next.clusters }).slice(1, -1);
      const tables = next.clusterTables && `"clusterTables":${clusterTablesDelta(base.clusterTables, next.clusterTables)}`;
      const parts = [Buffer.from(table).toString().slice(1, -1), lists, tables].filter((part) => part);
      return Buffer.from(`{${parts.join()}}`);
    },
    apply(base, body, { version, digest }) {
      const problems: string[] = [];
      const { frozen, clusters, clusterTables: rows, ...delta } = decodeJson(body, { version, digest }, ROUTE_DELTA);
      const table = applyDelta(base.table, delta, problems);
      const clusterTables = applyClusterTables(base.clusterTables, rows, problems);
      if (problems.length > 0) throw new ResourceInvalidError(problems);
      return { ...base, version, digest, frozen, clusters, table, clusterTables };
    },
  },
};

/** @throws ResourceInvalidError with every problem */
export function routeFromJson(value: unknown, { version, digest }: Versioned): Snapshot {
  return { version, digest, ...checkJson(value, { version, digest }, BODY) };
}

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

export type ClaimedRoute = ReturnType<typeof claimedRoute>;

/** Decodes a route of a registration. If that fails, the result has no table hashes. */
export function claimedRoute({ body, version }: ResourceMessage) {
  const claim = decodedOrUndefined(body);
  return {
    /** The hashes of the tables; none if the body is not readable. */
    tableHashes: claim === undefined ? [] : [claim.tableHash, ...(claim.clusterTables ?? []).map(({ tableHash: hash }) => hash)],
    /**
     * The digest is computed, so a proxy cannot claim the digest of other rules.
     * @param find the table with a hash, if it is known
     * @throws ResourceInvalidError
     */
    withTables(find: (hash: Uint8Array) => RouteTable | undefined): Snapshot {
      const problems = headProblems({ version, digest: "computed below" });
      const table = claim && find(claim.tableHash);
      const named = claim?.clusterTables?.map(({ name, tableHash: hash }) => [name, find(hash)] as const);
      const known = named?.flatMap(([name, each]) => (each === undefined ? [] : [[name, each] as const]));
      if (claim === undefined) problems.push("body: not readable");
      if (table === undefined || known?.length !== named?.length) problems.push("table: missing");
      if (problems.length > 0 || claim === undefined || table === undefined) throw new ResourceInvalidError(problems);
      const { tableHash: _, clusterTables: __, ...others } = claim;
      const content = { ...others, table, ...(known && { clusterTables: new Map(known) }) };
      return { version, digest: routeDigest(content), ...content };
    },
  };
}

const FROZEN = z.array(z.object({ namespace: z.string().min(1, "missing"), reason: z.string() })).optional();

const CLUSTER: z.ZodType<ClusterRoute> = z.object({
  name: z.string().min(1, "missing"),
  servers: NAMES.refine((servers) => servers.length > 0, "missing"),
  drainMs: z.int().min(0),
  upstream: z
    .object({
      url: z.string(),
      paths: z.array(z.string()).optional(),
      ca: z.string().optional(),
      serverName: z.string().optional(),
    })
    .optional(),
  isOpen: z.literal(true).optional(),
  objects: z.array(z.object({ group: z.string(), resource: z.string(), name: z.string().min(1, "missing") })).optional(),
  owner: z.string(),
  isFenced: z.literal(true).optional(),
});
const CLUSTER_LIST = z.array(CLUSTER).optional();

/** These lists are short, so a delta has the whole of each; absent: none. */
const ROUTE_DELTA = TABLE_DELTA.extend({ frozen: FROZEN, clusters: CLUSTER_LIST, clusterTables: CLUSTER_TABLES_DELTA });

/** The capability of a proxy that enforces `frozen`. One without it acknowledges such a route all the same. */
export const FREEZE = "freeze";

/** The capability of a proxy that also enforces `frozen` inside the clusters that it serves. */
export const CLUSTER_FREEZE = "cluster-freeze";

/** The most clusters of a namespace. */
export const MAX_CLUSTERS = 500;

/** The capability of a proxy that hides the objects of `clusters`. */
export const CLUSTER_OBJECTS = "cluster-objects";

/** The capability of a proxy that also limits what the pod sends to the servers of `clusters`, since it sees all of it. */
export const CLUSTER_SERVERS = "cluster-servers";

/** The capability of a proxy that serves requests to `clusters` with an upstream. One without it lets no request pass to them. */
export const CLUSTER_REQUESTS = "cluster-requests";

/**
 * To ignore `guard` or `words` is safe: writes are refused, and messages are less precise. To ignore `frozen`
 * or `clusters` is not safe, so the manager looks for the capability before it believes an acknowledgement.
 */
const CONTENT = {
  app: z.object({ namespace: z.string(), name: z.string().min(1, "missing") }),
  subset: z.string(),
  podNamespace: z.string().min(1, "missing"),
  lockName: z.string(),
  callers: z.object({ userAgent: z.string(), defaultOnlyUserAgents: NAMES, stripManagedFields: z.boolean() }),
  guard: z.literal("Warn", "not known to this version").optional(),
  frozen: FROZEN,
  clusters: CLUSTER_LIST,
  words: z.object({ kind: z.string(), rules: z.string(), lockField: z.string(), agentsField: z.string() }).optional(),
};

const BODY: z.ZodType<RouteContent> = z.object({ ...CONTENT, table: TABLE, clusterTables: CLUSTER_TABLES });
const NAMED_BODY = z.object({ ...CONTENT, tableHash: HASH, clusterTables: CLUSTER_TABLE_HASHES });

/** The content without the tables. */
function contentOf(content: RouteContent): Omit<RouteContent, "table" | "clusterTables"> {
  const { app, subset, podNamespace, lockName, callers, guard, frozen, clusters, words } = content;
  return { app, subset, podNamespace, lockName, callers, guard, frozen, clusters, words };
}

function namedBody(content: RouteContent): Uint8Array {
  const hashes = {
    tableHash: tableHash(content.table).toString("base64"),
    clusterTables: clusterTableHashes(content.clusterTables),
  };
  return Buffer.from(canonicalJson({ ...contentOf(content), ...hashes }));
}

/** True if the two differ only in what a delta can change. */
function hasSameFixedParts(base: Snapshot, next: Snapshot): boolean {
  const fixedOf = (snapshot: Snapshot) => contentOf({ ...snapshot, frozen: undefined, clusters: undefined });
  if (!isDeepStrictEqual(fixedOf(base), fixedOf(next))) return false;
  const [a, b] = [base.table, next.table];
  const isSame = a.rules === b.rules && a.sharedResources === b.sharedResources && a.retained === b.retained;
  return isSame || fixedPartsToJson(a) === fixedPartsToJson(b);
}

/**
 * The maximum length of a route without its tables, in a registration. Its largest part is the list of clusters: MAX_CLUSTERS fit, each
 * with the longest name, servers and objects, and MAX_CLUSTER_TABLES of them with CAs. User agents and frozen namespaces take 128 KiB at most.
 */
export const MAX_CLAIM_BYTES = 3.5 * 1024 * 1024;
/** The same in memory. */
const MAX_CLAIM_MEMORY = 5 * 1024 * 1024;

function decodedOrUndefined(body: Uint8Array): z.output<typeof NAMED_BODY> | undefined {
  try {
    return decodeJson(body, { version: 1, digest: "computed later" }, NAMED_BODY, MAX_CLAIM_MEMORY);
  } catch {
    return undefined;
  }
}
