// The part of kube-apiserver that filters and pages collections, with its rules and one of its bugs. For tests of server-side
// filtering. Hash and selectors follow their definitions and share no code with src.
//
// The bug: if a field selector narrows a list to one namespace, the continue token is relative to that namespace, but is read
// relative to all namespaces.
import { parseFieldSelector } from "../../src/kube/field-selector.ts";
import { matchesTerms } from "../../src/kube/label-selector.ts";
import type { Call } from "../../src/proxy/call/call.ts";
import type { Reply } from "../../src/proxy/http/handler.ts";
import { parseTerms } from "../localkube/parse-terms.ts";
import { jsonReply } from "./layer-call.ts";

export interface ServedObject {
  readonly namespace: string;
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface Server {
  /** In any order. */
  readonly objects: readonly ServedObject[];
  /** The feature gate ShardedListAndWatch; without it the parameter is ignored. The default is true. */
  readonly shards?: boolean;
  /** Returns 400 for these parameters, as aggregated API servers may. */
  readonly refuses?: readonly string[];
}

/** FNV-1a with 64 bits, by its definition. */
export function referenceHash(text: string): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash;
}

const RANGE =
  /^shardRange\(object\.metadata\.namespace, ?'0x([0-9a-f]{16}|10000000000000000)', ?'0x([0-9a-f]{16}|10000000000000000)'\)$/;

/** True if the object is selected. Throws for terms outside the API server's grammar. */
export function matchesShards(selector: string, { namespace }: ServedObject): boolean {
  const hash = referenceHash(namespace);
  const ranges = selector.split("||").map((term) => {
    const [, start, end] = RANGE.exec(term.trim()) ?? [];
    if (start === undefined || end === undefined || BigInt(`0x${start}`) >= BigInt(`0x${end}`))
      throw new Error(`not a range: ${term}`);
    return { start: BigInt(`0x${start}`), end: BigInt(`0x${end}`) };
  });
  return ranges.some(({ start, end }) => start <= hash && hash < end);
}

/** The objects that a query selects, in the order of the storage. */
export function select(server: Server, query: URLSearchParams, inNamespace = ""): ServedObject[] {
  const fields = parseFieldSelector(query.get("fieldSelector") ?? "");
  const labels = parseTerms(query.get("labelSelector") ?? "");
  const shards = server.shards === false ? "" : (query.get("shardSelector") ?? "");
  return server.objects
    .filter(({ namespace }) => inNamespace === "" || namespace === inNamespace)
    .filter((object) => fields.every(({ field, operator, value }) => (fieldOf(object, field) === value) === (operator === "=")))
    .filter((object) => matchesTerms(labels, object.labels ?? {}))
    .filter((object) => shards === "" || matchesShards(shards, object))
    .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** Responds to a list. */
export function answerList(server: Server, call: Call): Reply {
  const { query, path, segments } = call.info;
  if (server.refuses?.some((parameter) => query.has(parameter))) return jsonReply({ kind: "Status" }, 400);
  const at = segments.indexOf("namespaces");
  const inPath = at < 0 ? "" : (segments[at + 1] ?? "");
  const pinned = parseFieldSelector(query.get("fieldSelector") ?? "").find(
    (t) => t.field === "metadata.namespace" && t.operator === "=",
  );
  const continued = query.get("continue") ?? "";
  // The bug: only the first page uses the namespace of a field selector for the key prefix.
  const prefix = keyPrefix(inPath !== "" ? inPath : continued === "" ? (pinned?.value ?? "") : "");
  const start =
    continued === "" ? "" : prefix + (JSON.parse(Buffer.from(continued, "base64url").toString()) as { start: string }).start;
  const found = select(server, query, inPath).filter((object) => start === "" || keyOf(object) >= start);
  const limit = Number(query.get("limit") ?? 0);
  const items = limit > 0 ? found.slice(0, limit) : found;
  const last = items.at(-1);
  const more = last !== undefined && items.length < found.length;
  const token = more ? { continue: tokenOf(`${keyOf(last).slice(prefix.length)}\0`) } : {};
  return jsonReply({
    kind: path.endsWith("/pods") ? "PodList" : "ConfigMapList",
    apiVersion: "v1",
    metadata: { resourceVersion: "7", ...token, ...echoOf(server, query) },
    items: items.map((metadata) => ({ metadata })),
  });
}

function echoOf({ shards = true }: Server, query: URLSearchParams): object {
  return shards && query.has("shardSelector") ? { shardInfo: { selector: query.get("shardSelector") } } : {};
}

export function tokenOf(start: string): string {
  return Buffer.from(JSON.stringify({ v: "meta.k8s.io/v1", rv: 7, start })).toString("base64url");
}

function keyPrefix(namespace: string): string {
  return namespace === "" ? "" : `/${namespace}`;
}

function keyOf({ namespace, name }: ServedObject): string {
  return `/${namespace}/${name}`;
}

function fieldOf(object: ServedObject, field: string): string {
  if (field === "metadata.namespace") return object.namespace;
  if (field === "metadata.name") return object.name;
  throw new Error(`field label not supported: ${field}`);
}
