// Bodies where locks live: bounded, read by their own content type, and refused when they cannot be. Called by the election
// layer's parts.
import { isMeshError, MeshError } from "../../../base/errors.ts";
import { encodingOf } from "../../../kube/codec/content-negotiation.ts";
import { readObjectMeta } from "../../../kube/codec/object-meta.ts";
import { type Rename, renameObject } from "../../../kube/codec/rename.ts";
import type { Encoding } from "../../../kube/codec/types.ts";
import { StatusError, type StatusReason } from "../../../kube/status.ts";
import { discardBody } from "../../http/discard-body.ts";
import type { Call, Reply } from "../../http/handler.ts";
import { readBody } from "../../http/read-body.ts";
import type { ResourceCall } from "../../http/resource-call.ts";
import { readableEncoding } from "../readable-encoding.ts";
import { readJsonPatch, recordOfJsonPatch, renameJsonPatch } from "./lock-patch.ts";
import { type LockRecord, NO_RECORD, readLockRecord } from "./lock-record.ts";

/** Bound of a lease's body. */
const MAX_LEASE_BYTES = 1024 * 1024;
/** Bound of a configmap's or endpoints' body, which may be no lock: the API server's own limit for requests. */
export const MAX_OBJECT_BYTES = 3 * 1024 * 1024;

/** A request's body where locks live, as it can be read and renamed. */
export interface LockBody {
  readonly bytes: Uint8Array;
  /** `metadata.name`; "" if the body does not say it. */
  name(): string;
  /** The bytes with the lock's name replaced; the same array if it is another one. */
  renamed(rename: Rename): Uint8Array;
  record(resource: string): LockRecord;
}

/**
 * Reads the body.
 * @param needed false where it is only looked at: then one that cannot be read says nothing, and passes
 * @throws StatusError RequestEntityTooLarge, BadRequest; UnsupportedMediaType if nobody can say whether it is the lock's
 */
export async function requestBody(call: ResourceCall, needed: boolean): Promise<LockBody> {
  const maxBytes = call.info.resource === "leases" ? MAX_LEASE_BYTES : MAX_OBJECT_BYTES;
  const bytes = await readBounded(
    call.body,
    maxBytes,
    "RequestEntityTooLarge",
    `${call.info.verb} ${call.info.resource}: the body`,
  );
  try {
    const body = await readAs(call, bytes);
    if (!needed) body.name(); // throws if it cannot be read
    return body;
  } catch (error) {
    if (needed) throw error;
    return { bytes, name: () => "", renamed: () => bytes, record: () => NO_RECORD };
  }
}

async function readAs(call: ResourceCall, bytes: Uint8Array): Promise<LockBody> {
  const type = mediaType(call);
  const whole = call.info.verb !== "patch";
  const encoding = type === "" ? "json" : encodingOf(type); // the API server takes a missing type for JSON
  if (encoding === "json" || encoding === "protobuf") return objectBody(encoding, bytes, whole);
  if (type === "application/json-patch+json") return patchBody(bytes);
  // client-go and kubectl send JSON as apply patches.
  if (type === "application/apply-patch+yaml" && isJson(bytes)) return objectBody("json", bytes, whole);
  if (type === "application/apply-patch+yaml" || type === "application/yaml") return yamlBody(call, bytes, whole);
  const message = `ctrlmesh: ${call.info.verb} ${call.info.resource}: content type "${type}" cannot be read where locks live; send JSON or protobuf`;
  throw new StatusError("UnsupportedMediaType", message);
}

function objectBody(encoding: Encoding, bytes: Uint8Array, whole: boolean): LockBody {
  return {
    bytes,
    name: () => readingRequest(() => readObjectMeta(encoding, bytes).name),
    renamed: (rename) => (bytes.length === 0 ? bytes : readingRequest(() => renameObject(encoding, bytes, rename))),
    record: (resource) => readLockRecord(encoding, resource, bytes, whole),
  };
}

function patchBody(bytes: Uint8Array): LockBody {
  const patch = readJsonPatch(bytes);
  return {
    bytes,
    name: () => "",
    renamed: (rename) => readingRequest(() => renameJsonPatch(bytes, rename)),
    record: (resource) => recordOfJsonPatch(resource, patch),
  };
}

async function yamlBody({ info }: ResourceCall, bytes: Uint8Array, whole: boolean): Promise<LockBody> {
  const { readYaml } = await import("./lock-yaml.ts");
  const yaml = await readYaml(bytes, info.verb === "create");
  return { ...objectBody("json", yaml.json, whole), bytes, renamed: yaml.renamed };
}

function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(Buffer.from(bytes).toString("utf8"));
    return true;
  } catch {
    return false;
  }
}

async function readBounded(body: Reply["body"], maxBytes: number, reason: StatusReason, what: string): Promise<Uint8Array> {
  try {
    return await readBody(body, maxBytes);
  } catch (error) {
    if (!isMeshError(error, "BODY_TOO_LARGE")) throw error;
    throw new StatusError(reason, `ctrlmesh: ${what} is over ${maxBytes} bytes`);
  }
}

function mediaType({ headers }: Call): string {
  return (headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
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

// RBAC knows the lock by its name upstream only: without it the operator's log would mislead whoever mends the Role.
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

// The lock's reply is small: read whole, translated, and looked at by the leader tracker.
export async function translatedObject(reply: Reply, rename: Rename | undefined): Promise<Reply> {
  if (reply.body === null) return reply;
  const body = await readBounded(reply.body, MAX_OBJECT_BYTES, "InternalError", "the API server's answer about a lock");
  if (rename === undefined) return { ...reply, body };
  const encoding = readableEncoding(reply);
  // An error that is no Status (a load balancer's page) names no object.
  if (encoding === undefined && reply.status >= 400) return { ...reply, body };
  if (encoding === undefined) throw unreadableReply(reply);
  return withBody(reply, renameObject(encoding, body, noted(backwards(rename), reply.status)));
}
