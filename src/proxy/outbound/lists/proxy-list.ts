// Small lists that the proxy itself sends, as the caller and with the caller's selectors and encoding.
// Invariant: each reply goes through `checkedList` before it is read.
import type { MeshError } from "../../../base/errors.ts";
import { type Encoding, readListMeta } from "../../../kube/codec/codec.ts";
import { isBucket } from "../../../kube/place.ts";
import type { Version } from "../../../kube/resource-version.ts";
import type { ListSize } from "../../../route/plan-lists.ts";
import { joinSelectors } from "../../../route/plan-query.ts";
import { isNamespaces } from "../../../route/snapshot.ts";
import { type Handler, inNamespace, type ResourceCall, withQuery } from "../../call/call.ts";
import { readableEncoding } from "../../call/readable.ts";
import { asSource, type ByteSource, discardBody, readBody } from "../../http/byte-stream.ts";
import type { Reply, ReplyHeaders } from "../../http/handler.ts";

/** What the smallest list shows of a collection. */
export interface MeasuredList {
  readonly headers: ReplyHeaders;
  readonly encoding: Encoding;
  /** The API server's newest; undefined if it cannot be compared. */
  readonly version: Version | undefined;
  /** Undefined if the API server did not count. */
  readonly size: ListSize | undefined;
}

type ErrorOf = (what: string, status: number) => MeshError;

/** Bound of the body of a list of one object, which has at most 1.5 MB. */
const MAX_MEASURE_BYTES = 4 * 1024 * 1024;

/**
 * Lists one object over all namespaces, which the caller must be permitted to.
 * @param namespace only an object in it: the API server looks at fewer objects, and does not count them
 * @throws MeshError as `errorOf` says
 */
export async function measureList(
  call: ResourceCall,
  list: Handler,
  errorOf: ErrorOf,
  namespace?: string | undefined,
): Promise<MeasuredList> {
  const { body, encoding, headers: all } = checkedList(await listOne(call, list, namespace), errorOf);
  const bytes = await readBody(body, MAX_MEASURE_BYTES);
  const { version, continues, remaining } = readListMeta(encoding, bytes);
  const { "content-length": _, etag: _tag, ...headers } = all;
  const items = continues ? remaining && remaining + 1 : 1;
  const size = namespace !== undefined || items === undefined ? undefined : { items, bytes: items * bytes.length };
  return { headers, encoding, version, size };
}

function listOne(call: ResourceCall, list: Handler, namespace: string | undefined): Promise<Reply> {
  const query = selectionOf(call);
  query.set("limit", "1");
  if (namespace !== undefined)
    query.set("fieldSelector", joinSelectors(query.get("fieldSelector"), `metadata.namespace=${namespace}`));
  return list({ ...withQuery(call, query), headers: listHeaders(call) });
}

/** The list of one namespace, or of all cluster-scoped objects for a bucket, exactly at a version. */
export function listAt(version: Version, place: string, call: ResourceCall, list: Handler): Promise<Reply> {
  const query = selectionOf(call);
  query.set("resourceVersion", String(version));
  query.set("resourceVersionMatch", "Exact");
  const headers = listHeaders(call);
  const isNamespace = isNamespaces(call.info);
  if (!isNamespace && !isBucket(place)) return list({ ...inNamespace(call, place, query), headers });
  if (isNamespace) query.set("fieldSelector", joinSelectors(query.get("fieldSelector"), `metadata.name=${place}`));
  return list({ ...withQuery(call, query), headers });
}

// What the caller selects, and in which form.
function selectionOf({ info }: ResourceCall): URLSearchParams {
  const query = new URLSearchParams();
  for (const name of ["labelSelector", "fieldSelector", "shardSelector", "includeObject"]) {
    const value = info.query.get(name);
    if (value !== null) query.set(name, value);
  }
  return query;
}

function listHeaders({ headers }: ResourceCall): ResourceCall["headers"] {
  return { ...headers, accept: listAccept(headers.accept ?? "") };
}

// A watch of metadata alone is asked for as PartialObjectMetadata, a list as PartialObjectMetadataList.
function listAccept(accept: string): string {
  return accept.replaceAll(/;\s*as=PartialObjectMetadata(?=\s*(?:[;,]|$))/g, ";as=PartialObjectMetadataList");
}

/** A successful reply in a readable encoding. */
export interface CheckedList {
  readonly body: ByteSource;
  readonly encoding: Encoding;
  readonly headers: ReplyHeaders;
}

/**
 * The reply, if it is a list or watch that can be read.
 * @param errorOf the error for any other reply, described by `what`
 * @param expected the only encoding that will do; undefined if both will
 * @throws MeshError as `errorOf` says
 */
export function checkedList(reply: Reply, errorOf: ErrorOf, expected?: Encoding | undefined): CheckedList {
  const { status, headers, body } = reply;
  const encoding = readableEncoding(reply);
  if (status === 200 && body !== null && encoding !== undefined && encoding === (expected ?? encoding))
    return { body: asSource(body), encoding, headers };
  discardBody(body);
  throw errorOf(`status ${status}, content type ${String(headers["content-type"] ?? "none")}`, status);
}
