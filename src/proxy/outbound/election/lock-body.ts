// Reads the bodies of requests and replies where locks live. Invariant: a body is bounded and read by its own
// content type, and a request that cannot be read is refused.
import { isMeshError, MeshError } from "../../../base/errors.ts";
import { type Encoding, type Rename, readObjectMeta, renameObject } from "../../../kube/codec/codec.ts";
import {
  APPLY_YAML_TYPE,
  JSON_TYPE,
  MERGE_PATCH_TYPE,
  mediaTypeOf,
  PROTOBUF_TYPE,
  STRATEGIC_MERGE_PATCH_TYPE,
} from "../../../kube/media-types.ts";
import type { ResourceVerb } from "../../../kube/request-info.ts";
import { StatusError, type StatusReason } from "../../../kube/status.ts";
import { type ResourceCall, readableEncoding } from "../../call/call.ts";
import { discardBody, readBody } from "../../http/byte-stream.ts";
import type { Reply } from "../../http/handler.ts";
import { type LockRecord, NO_RECORD, readLockRecord } from "./lock-record.ts";

/** Bound of a lease's body. */
const MAX_LEASE_BYTES = 1024 * 1024;
/** A configmap's or endpoints' body may be no lock: the API server's own limit for requests. */
export const MAX_OBJECT_BYTES = 3 * 1024 * 1024;

export interface LockBody {
  readonly bytes: Uint8Array;
  /** `metadata.name`; "" if the body does not say it. */
  name(): string;
  /** The bytes with the lock's name replaced; the same array if it is another one. */
  renamed(rename: Rename): Uint8Array;
  record(resource: string): LockRecord;
}

/** The encoding of each content type that can be read where locks live. */
const ENCODINGS: ReadonlyMap<string, Encoding> = new Map([
  ["", "json"], // the API server takes a missing type for JSON
  [JSON_TYPE, "json"],
  [MERGE_PATCH_TYPE, "json"],
  [STRATEGIC_MERGE_PATCH_TYPE, "json"],
  [APPLY_YAML_TYPE, "json"], // client-go, kube-rs and kubectl send JSON
  [PROTOBUF_TYPE, "protobuf"],
]);

/**
 * @param needed false if a body that cannot be read may pass, and then says nothing
 * @throws StatusError RequestEntityTooLarge, BadRequest; UnsupportedMediaType if the type hides the name
 */
export async function requestBody(call: ResourceCall, needed: boolean): Promise<LockBody> {
  const { verb, resource } = call.info;
  const maxBytes = resource === "leases" ? MAX_LEASE_BYTES : MAX_OBJECT_BYTES;
  const bytes = await readBounded(call.body, maxBytes, "RequestEntityTooLarge", `${verb} ${resource}: the body`);
  try {
    const type = mediaTypeOf(call.headers["content-type"]);
    const encoding = ENCODINGS.get(type);
    if (encoding === undefined) throw unreadable(call, `content type "${type}"`);
    if (type === APPLY_YAML_TYPE && !isJson(bytes)) throw unreadable(call, "YAML");
    const body = objectBody(encoding, bytes, verb);
    if (!needed) body.name(); // throws if it cannot be read
    return body;
  } catch (error) {
    if (needed) throw error;
    return { bytes, name: () => "", renamed: () => bytes, record: () => NO_RECORD };
  }
}

function objectBody(encoding: Encoding, bytes: Uint8Array, verb: ResourceVerb): LockBody {
  return {
    bytes,
    name: () => readingRequest(() => readObjectMeta(encoding, bytes).name),
    renamed: (rename) => (bytes.length === 0 ? bytes : readingRequest(() => renameObject(encoding, bytes, rename))),
    record: (resource) => readLockRecord(encoding, resource, bytes, verb !== "patch"),
  };
}

function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(Buffer.from(bytes).toString("utf8"));
    return true;
  } catch {
    return false;
  }
}

function unreadable({ info: { verb, resource } }: ResourceCall, what: string): StatusError {
  const message = `ctrlmesh: ${verb} ${resource}: the name of a leader-election lock cannot be found in ${what}; send JSON or protobuf, and a patch as a merge or apply patch in JSON`;
  return new StatusError("UnsupportedMediaType", message);
}

async function readBounded(body: Reply["body"], maxBytes: number, reason: StatusReason, what: string): Promise<Uint8Array> {
  try {
    return await readBody(body, maxBytes);
  } catch (error) {
    if (!isMeshError(error, "BODY_TOO_LARGE")) throw error;
    throw new StatusError(reason, `ctrlmesh: ${what} is over ${maxBytes} bytes`);
  }
}

function readingRequest<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof MeshError) || !error.code.startsWith("CODEC_")) throw error;
    throw new StatusError("BadRequest", `ctrlmesh: ${error.message}`, undefined, { cause: error });
  }
}

export function backwards({ from, to }: Rename): Rename {
  return { from: to, to: from };
}

// RBAC knows the lock by its name upstream only: without it the operator's log would mislead a Role's author.
function noted(rename: Rename, status: number): Rename {
  return status === 403 ? { ...rename, note: ` (ctrlmesh: upstream "${rename.from}")` } : rename;
}

function withBody(reply: Reply, body: Uint8Array): Reply {
  return { ...reply, headers: { ...reply.headers, "content-length": String(body.length) }, body };
}

export function unreadableReply(reply: Reply): StatusError {
  discardBody(reply.body);
  return new StatusError(
    "NotAcceptable",
    `ctrlmesh: the API server's reply cannot be translated (${String(reply.headers["content-type"] ?? "no content type")})`,
  );
}

/** The reply with its body read whole: whatever the API server answers about one lock is small. */
export async function wholeReply(reply: Reply): Promise<Reply & { readonly body: Uint8Array | null }> {
  if (reply.body === null) return { ...reply, body: null };
  const body = await readBounded(reply.body, MAX_OBJECT_BYTES, "InternalError", "the API server's answer about a lock");
  return { ...reply, body };
}

/** The reply about one lock in the operator's words. */
export async function translatedObject(reply: Reply, rename: Rename | undefined): Promise<Reply> {
  const whole = await wholeReply(reply);
  if (whole.body === null || rename === undefined) return whole;
  const encoding = readableEncoding(whole);
  // An error that is no Status (a load balancer's page) names no object.
  if (encoding === undefined && whole.status >= 400) return whole;
  if (encoding === undefined) throw unreadableReply(whole);
  return withBody(whole, renameObject(encoding, whole.body, noted(backwards(rename), whole.status)));
}
