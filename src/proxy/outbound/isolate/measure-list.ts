// The version and the size of a collection, by the smallest list of it, and the checks of the replies to
// lists by namespace. Called by by-namespace.ts.
import { MeshError } from "../../../base/errors.ts";
import { type Encoding, readListMeta } from "../../../kube/codec/codec.ts";
import type { Version } from "../../../kube/resource-version.ts";
import type { ListSize } from "../../../route/plan-lists.ts";
import type { Handler, ResourceCall } from "../../call/call.ts";
import { readableEncoding } from "../../call/readable.ts";
import { asSource, type ByteSource, discardBody, readBody } from "../../http/byte-stream.ts";
import type { Reply, ReplyHeaders } from "../../http/handler.ts";
import { listOne } from "./list-at.ts";

/** A list of one object, of at most 1.5 MB. */
const MAX_MEASURE_BYTES = 4 * 1024 * 1024;
/** Answers that say nothing about whether the next attempt works. */
const PASSING = new Set([401, 410, 429, 500, 502, 503]);

export interface Measured {
  readonly headers: ReplyHeaders;
  readonly encoding: Encoding;
  readonly version: Version;
  /** Undefined if the API server did not count. */
  readonly size: ListSize | undefined;
}

/**
 * Lists one object over all namespaces, which the caller must be permitted to.
 * @param namespace only an object in it: the API server looks at fewer objects, and does not count them
 * @throws MeshError
 */
export async function measure(call: ResourceCall, namespace: string | undefined, next: Handler): Promise<Measured> {
  const reply = checked(await listOne(call, next, namespace));
  const bytes = await readBody(reply.body, MAX_MEASURE_BYTES);
  const { version, continues, remaining } = readListMeta(reply.encoding, bytes);
  if (version === undefined) throw failed("the version cannot be compared");
  const { "content-length": _, etag: _tag, ...headers } = reply.headers;
  const items = continues ? remaining && remaining + 1 : 1;
  const size = namespace !== undefined || items === undefined ? undefined : { items, bytes: items * bytes.length };
  return { headers, encoding: reply.encoding, version, size };
}

interface Checked {
  readonly body: ByteSource;
  readonly encoding: Encoding;
  readonly headers: ReplyHeaders;
}

/** @throws MeshError for a reply that is no list in a readable encoding, or in another one than expected */
export function checked(reply: Reply, expected?: Encoding): Checked {
  const { status, headers, body } = reply;
  const encoding = readableEncoding(reply);
  if (status === 200 && body !== null && encoding !== undefined && encoding === (expected ?? encoding))
    return { body: asSource(body), encoding, headers };
  discardBody(body);
  const what = `status ${status}, content type ${String(headers["content-type"] ?? "none")}`;
  // The caller may not list all namespaces, which says nothing of lists by namespace.
  const isForbidden = status === 403 && expected === undefined;
  throw PASSING.has(status) || isForbidden ? new MeshError("LIST_FAILED", what) : failed(what);
}

function failed(what: string): MeshError {
  return new MeshError("LIST_BY_NAMESPACE_REFUSED", `listing by namespace: ${what}`);
}

/** True if the next attempt would fail too, so that the one list serves better for a while. */
export function isLasting(error: unknown): boolean {
  return error instanceof MeshError && (error.code === "LIST_BY_NAMESPACE_REFUSED" || error.code.startsWith("CODEC_"));
}
