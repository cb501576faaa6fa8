// The route as a resource type, in JSON. `contentOf` and `CONTENT` are the only lists of a route's fields:
// digest, deltas, registrations and the stored file all use them. Invariant: a route that decodes without an
// error can be enforced; otherwise the error names every problem.
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import type { ClusterRoute } from "../ownership/clusters.ts";
import type { Snapshot } from "../ownership/snapshot.ts";
import type { RouteTable } from "../ownership/table.ts";
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
import { NAMES, TABLE_JSON, tableFromJson } from "./table-schema.ts";

/** A route without version and digest. */
export type RouteContent = Omit<Snapshot, keyof Versioned>;

export const ROUTE: ResourceType<Snapshot> = {
  name: "routes",
  encode: (snapshot) =>
    Buffer.concat([
      Buffer.from(`${canonicalJson(contentOf(snapshot)).slice(0, -1)},"table":`),
      tableToBytes(snapshot.table),
      Buffer.from("}"),
    ]),
  decode: (body, head) => routeFromJson(parseBody(body, head), head),
  delta: {
    capability: "routes-delta",
    encode(base, next) {
      if (!hasSameFixedParts(base, next)) return undefined;
      const table = diffTables(base.table, next.table);
      const lists = JSON.stringify({ frozen: next.frozen, clusters: next.clusters });
      return table === undefined || lists === "{}" ? table : Buffer.from(`${table.toString().slice(0, -1)},${lists.slice(1)}`);
    },
    apply(base, body, { version, digest }) {
      const problems: string[] = [];
      const { frozen, clusters, ...delta } = decodeJson(body, { version, digest }, ROUTE_DELTA);
      const table = applyDelta(base.table, delta, problems);
      if (problems.length > 0) throw new ResourceInvalidError(problems);
      return { ...base, version, digest, frozen, clusters, table };
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

/** Decodes a route of a registration. If that fails, the result has no table hash. */
export function claimedRoute({ body, version }: ResourceMessage) {
  const claim = decodedOrUndefined(body);
  return {
    /** The hash of the table; undefined if the body is not readable. */
    tableHash: claim?.tableHash,
    /**
     * The digest is computed, so a proxy cannot claim the digest of other rules.
     * @throws ResourceInvalidError
     */
    withTable(table: RouteTable | undefined): Snapshot {
      const problems = headProblems({ version, digest: "computed below" });
      if (claim === undefined) problems.push("body: not readable");
      if (table === undefined) problems.push("table: missing");
      if (problems.length > 0 || claim === undefined || table === undefined) throw new ResourceInvalidError(problems);
      const { tableHash: _, ...others } = claim;
      const content = { ...others, table };
      return { version, digest: routeDigest(content), ...content };
    },
  };
}

const FROZEN = z.array(z.object({ namespace: z.string().min(1, "missing"), reason: z.string() })).optional();

const CLUSTER: z.ZodType<ClusterRoute> = z.object({
  name: z.string().min(1, "missing"),
  servers: NAMES.refine((servers) => servers.length > 0, "missing"),
  drainMs: z.int().min(0),
  isOpen: z.literal(true).optional(),
  objects: z.array(z.object({ group: z.string(), resource: z.string(), name: z.string().min(1, "missing") })).optional(),
  owner: z.string(),
  isFenced: z.literal(true).optional(),
});
const CLUSTER_LIST = z.array(CLUSTER).optional();

/** These lists are short, so a delta has the whole of each; absent: none. */
const ROUTE_DELTA = TABLE_DELTA.extend({ frozen: FROZEN, clusters: CLUSTER_LIST });

/** The capability of a proxy that enforces `frozen`. One without it acknowledges such a route all the same. */
export const FREEZE = "freeze";

/** The most clusters of a namespace. */
export const MAX_CLUSTERS = 500;

/** The capability of a proxy that hides the objects of `clusters`. */
export const CLUSTER_OBJECTS = "cluster-objects";

/** The capability of a proxy that also limits what the pod sends to the servers of `clusters`, since it sees all of it. */
export const CLUSTER_SERVERS = "cluster-servers";

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

const TABLE = TABLE_JSON.transform((json, { addIssue }) =>
  tableFromJson(json, (path, message) => addIssue({ code: "custom", path: [...path], message })),
);
const BODY: z.ZodType<RouteContent> = z.object({ ...CONTENT, table: TABLE });

const HASH_BYTES = 32;
const HASH = z
  .string()
  .transform((text) => Buffer.from(text, "base64"))
  .refine(({ length }) => length === HASH_BYTES);
const NAMED_BODY = z.object({ ...CONTENT, tableHash: HASH });

/** The content without the table. */
function contentOf(content: RouteContent): Omit<RouteContent, "table"> {
  const { app, subset, podNamespace, lockName, callers, guard, frozen, clusters, words } = content;
  return { app, subset, podNamespace, lockName, callers, guard, frozen, clusters, words };
}

function namedBody(content: RouteContent): Uint8Array {
  return Buffer.from(canonicalJson({ ...contentOf(content), tableHash: tableHash(content.table).toString("base64") }));
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
 * The maximum length of a route without its table, in a registration. Its largest part is the list of clusters: MAX_CLUSTERS fit, each
 * with the longest name, servers and objects. User agents and frozen namespaces take 128 KiB at most.
 */
export const MAX_CLAIM_BYTES = 3 * 1024 * 1024;
/** The same in memory. */
const MAX_CLAIM_MEMORY = 5 * 1024 * 1024;

function decodedOrUndefined(body: Uint8Array): z.output<typeof NAMED_BODY> | undefined {
  try {
    return decodeJson(body, { version: 1, digest: "computed later" }, NAMED_BODY, MAX_CLAIM_MEMORY);
  } catch {
    return undefined;
  }
}
