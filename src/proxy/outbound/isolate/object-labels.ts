// The labels of the objects in a body. Invariant: a body that cannot be read with certainty is an error.
import { parseJson } from "../../../base/json.ts";
import { codecError, type Encoding, type ItemMeta, readFrame, readObjectMeta } from "../../../kube/codec/codec.ts";
import { requestEncodingOf } from "../../../kube/codec/content-negotiation.ts";
import type { Labels } from "../../../kube/label-selector.ts";
import { JSON_PATCH_TYPE, MERGE_PATCH_TYPE, mediaTypeOf, STRATEGIC_MERGE_PATCH_TYPE } from "../../../kube/media-types.ts";
import { StatusError } from "../../../kube/status.ts";
import { orBadRequest, type ResourceCall, readableEncoding, readBounded } from "../../call/call.ts";
import { discardBody, readBody } from "../../http/byte-stream.ts";
import type { Reply } from "../../http/handler.ts";

/** The API server's own limit for the body of a request. */
const MAX_OBJECT_BYTES = 3 * 1024 * 1024;

const WITH_LABELS = { labels: true };
const EVENT_HEAD = Buffer.from('{"type":"ADDED","object":');
const EVENT_TAIL = Buffer.from("}\n");

/** The call with its body in memory. @throws StatusError RequestEntityTooLarge */
export async function withBytes(call: ResourceCall): Promise<CallWithBytes> {
  const what = `${call.info.verb} ${call.info.resource}: the body`;
  return { ...call, body: await readBounded(call.body, MAX_OBJECT_BYTES, "RequestEntityTooLarge", what) };
}

export type CallWithBytes = ResourceCall & { readonly body: Uint8Array };

/** The labels in a request's body. @throws StatusError UnsupportedMediaType, BadRequest */
export function labelsInRequest(call: CallWithBytes): Labels {
  return metaInRequest(call, "labels decide").labels ?? {};
}

/** A create with the name that its body gives to the object: "" if the API server generates the name. */
export async function withNameFromBody(call: ResourceCall): Promise<ResourceCall> {
  const read = await withBytes(call);
  const { name } = metaInRequest(read, "the name decides");
  return { ...read, info: { ...call.info, name } };
}

function metaInRequest(call: CallWithBytes, why: string): ItemMeta {
  const encoding = requestEncodingOf(call.headers["content-type"]);
  if (encoding !== "json" && encoding !== "protobuf") {
    const type = mediaTypeOf(call.headers["content-type"]);
    const message = `ctrlmesh: ${call.info.verb} ${call.info.resource}: content type "${type}" cannot be read, and ${why} which subset owns the object; send JSON or protobuf`;
    throw new StatusError("UnsupportedMediaType", message);
  }
  return orBadRequest(() => readObjectMeta(encoding, call.body, WITH_LABELS));
}

/**
 * The reply with its body read, and the objects in it: one object, or the rows of a Table.
 * @throws StatusError NotAcceptable; MeshError of the codec, or BODY_TOO_LARGE
 */
export async function objectsInReply(reply: Reply) {
  const encoding = readableEncoding(reply);
  if (encoding === undefined) {
    discardBody(reply.body);
    const type = String(reply.headers["content-type"] ?? "none");
    const message = `ctrlmesh: the labels in the API server's reply cannot be read (content type ${type})`;
    throw new StatusError("NotAcceptable", message);
  }
  const body = await readBody(reply.body, MAX_OBJECT_BYTES);
  return { reply: { ...reply, body }, objects: objectsIn(encoding, body) };
}

// The reader of watch events can distinguish an object from a Table. A Table is always JSON.
function objectsIn(encoding: Encoding, body: Uint8Array): readonly ItemMeta[] {
  if (encoding === "protobuf") return [readObjectMeta(encoding, body, WITH_LABELS)];
  const { objects, unreadable } = readFrame("json", Buffer.concat([EVENT_HEAD, body, EVENT_TAIL]), WITH_LABELS);
  if (unreadable > 0 || objects.length === 0)
    throw codecError("CODEC_AMBIGUOUS", "reading an object: its metadata cannot be read with certainty");
  return objects;
}

/** False if the patch alone shows that it leaves metadata.labels: then it needs no dry run. */
export function mayChangeLabels(mediaType: string, body: Uint8Array): boolean {
  switch (mediaType) {
    case JSON_PATCH_TYPE: {
      const operations = parse(body);
      return !Array.isArray(operations) || operations.some((operation) => !leavesLabels(operation));
    }
    case MERGE_PATCH_TYPE:
    case STRATEGIC_MERGE_PATCH_TYPE:
      return mergesLabels(parse(body));
    default:
      // A server-side apply also removes labels that its field manager had set and that it omits.
      return true;
  }
}

// If a key occurs twice, the last value counts, as in Go.
function parse(body: Uint8Array): unknown {
  try {
    return parseJson(body);
  } catch {
    return undefined;
  }
}

function mergesLabels(patch: unknown): boolean {
  if (!isObject(patch) || hasDirective(patch)) return true;
  const metadata = patch.metadata;
  if (metadata === undefined) return false;
  return !isObject(metadata) || hasDirective(metadata) || Object.hasOwn(metadata, "labels");
}

// Keys such as $patch of a strategic merge patch may replace all other keys of the object.
function hasDirective(patch: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(patch).some((key) => key.startsWith("$"));
}

// The path is a JSON pointer; "" is the whole object. A move also removes the value at `from`.
function leavesLabels(operation: unknown): boolean {
  if (!isObject(operation)) return false;
  const { op, path, from } = operation;
  if (op === "test") return true;
  const isMove = op === "move";
  if (!isMove && op !== "add" && op !== "remove" && op !== "replace" && op !== "copy") return false;
  return isOutsideLabels(path) && (!isMove || isOutsideLabels(from));
}

function isOutsideLabels(pointer: unknown): boolean {
  if (typeof pointer !== "string" || !pointer.startsWith("/") || pointer === "/metadata") return false;
  return pointer !== "/metadata/labels" && !pointer.startsWith("/metadata/labels/");
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
