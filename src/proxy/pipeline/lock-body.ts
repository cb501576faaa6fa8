// Bodies where locks live: bounded, read by their own content type, and refused when they cannot be. Called by the election
// layer's parts.
import { isMeshError, MeshError } from "../../base/errors.ts";
import { encodingOf } from "../../kube/codec/media-type.ts";
import { readObjectMeta } from "../../kube/codec/object-meta.ts";
import { type Rename, renameObject } from "../../kube/codec/rename.ts";
import type { Encoding } from "../../kube/codec/types.ts";
import { StatusError, type StatusReason } from "../../kube/status.ts";
import { discardBody } from "./discard-body.ts";
import type { Call, Reply } from "./handler.ts";
import { readBody } from "./read-body.ts";
import { readableEncoding } from "./readable-encoding.ts";
import type { ResourceCall } from "./resource-call.ts";

/** Bound of a lease's body. */
export const MAX_LEASE_BYTES = 1024 * 1024;
/** Bound of a configmap's or endpoints' body, which may be no lock: the API server's own limit for requests. */
export const MAX_OBJECT_BYTES = 3 * 1024 * 1024;

export async function requestBody(call: ResourceCall): Promise<Uint8Array> {
  const maxBytes = call.info.resource === "leases" ? MAX_LEASE_BYTES : MAX_OBJECT_BYTES;
  return readBounded(call.body, maxBytes, "RequestEntityTooLarge", `${call.info.verb} ${call.info.resource}: the body`);
}

async function readBounded(body: Reply["body"], maxBytes: number, reason: StatusReason, what: string): Promise<Uint8Array> {
  try {
    return await readBody(body, maxBytes);
  } catch (error) {
    if (!isMeshError(error, "BODY_TOO_LARGE")) throw error;
    throw new StatusError(reason, `ctrlmesh: ${what} is over ${maxBytes} bytes`);
  }
}

export function requestEncoding(call: ResourceCall, body: Uint8Array): Encoding | undefined {
  const type = mediaType(call);
  // client-go sends JSON as apply patches, of which YAML is a superset; the API server takes a missing type for JSON.
  const isJson = type === "" || (type === "application/apply-patch+yaml" && body.find((byte) => byte > 0x20) === 0x7b);
  if (isJson) return "json";
  const encoding = encodingOf(type);
  return encoding === "json" || encoding === "protobuf" ? encoding : undefined;
}

export function mediaType({ headers }: Call): string {
  return (headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

export function readName(encoding: Encoding, body: Uint8Array): string {
  return readingRequest(() => readObjectMeta(encoding, body).name);
}

export function readingRequest<T>(read: () => T): T {
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

export function withBody(reply: Reply, body: Uint8Array): Reply {
  return { ...reply, headers: { ...reply.headers, "content-length": String(body.length) }, body };
}

export function unreadableBody(call: ResourceCall): StatusError {
  const message = `ctrlmesh: ${call.info.verb} ${call.info.resource}: content type "${mediaType(call)}" cannot be read where locks live; send JSON or protobuf`;
  return new StatusError("UnsupportedMediaType", message);
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
  return withBody(reply, renameObject(encoding, body, backwards(rename)));
}
