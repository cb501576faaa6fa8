// The labels of the objects in a body. Invariant: a body that cannot be read with certainty is an error. Called by object-guard.ts, only
// for resources that are partitioned by label.
import { isMeshError } from "../../../base/errors.ts";
import { encodingOf } from "../../../kube/codec/content-negotiation.ts";
import { readObjectMeta } from "../../../kube/codec/object-meta.ts";
import { codecError, type Encoding, type ItemMeta, isCodecError } from "../../../kube/codec/types.ts";
import { readFrame } from "../../../kube/codec/watch-frames.ts";
import type { Labels } from "../../../kube/label-selector.ts";
import { mediaTypeOf } from "../../../kube/media-types.ts";
import { StatusError } from "../../../kube/status.ts";
import { readableEncoding } from "../../call/readable.ts";
import type { ResourceCall } from "../../call/resource-call.ts";
import { discardBody } from "../../http/discard-body.ts";
import type { Reply } from "../../http/handler.ts";
import { readBody } from "../../http/read-body.ts";

/** The API server's own limit for the body of a request; no object is larger. */
const MAX_OBJECT_BYTES = 3 * 1024 * 1024;

const WITH_LABELS = { labels: true };
const EVENT_HEAD = Buffer.from('{"type":"ADDED","object":');
const EVENT_TAIL = Buffer.from("}\n");

/** The bytes of a request's body. @throws StatusError RequestEntityTooLarge */
export async function requestBytes(call: ResourceCall): Promise<Uint8Array> {
  try {
    return await readBody(call.body, MAX_OBJECT_BYTES);
  } catch (error) {
    if (!isMeshError(error, "BODY_TOO_LARGE")) throw error;
    const message = `ctrlmesh: ${call.info.verb} ${call.info.resource}: the body is over ${MAX_OBJECT_BYTES} bytes`;
    throw new StatusError("RequestEntityTooLarge", message);
  }
}

/** The labels in a request's body. @throws StatusError UnsupportedMediaType, BadRequest */
export function labelsInRequest(call: ResourceCall, body: Uint8Array): Labels {
  const type = mediaTypeOf(call.headers["content-type"]);
  const encoding = type === "" ? "json" : encodingOf(type); // the API server takes a missing type for JSON
  if (encoding !== "json" && encoding !== "protobuf") {
    const message = `ctrlmesh: ${call.info.verb} ${call.info.resource}: content type "${type}" cannot be read, and labels decide which subset owns the object; send JSON or protobuf`;
    throw new StatusError("UnsupportedMediaType", message);
  }
  try {
    return readObjectMeta(encoding, body, WITH_LABELS).labels ?? {};
  } catch (error) {
    if (!isCodecError(error)) throw error;
    throw new StatusError("BadRequest", `ctrlmesh: ${error.message}`, undefined, { cause: error });
  }
}

/** A reply of which the body has been read, and the objects in it: one, or a Table's rows. */
export interface ReadReply {
  readonly reply: Reply;
  readonly objects: readonly ItemMeta[];
}

/** Reads a reply of status 200 or 201. @throws StatusError NotAcceptable; MeshError of the codec, or BODY_TOO_LARGE */
export async function objectsInReply(reply: Reply): Promise<ReadReply> {
  const encoding = readableEncoding(reply);
  if (encoding === undefined) {
    discardBody(reply.body);
    const type = String(reply.headers["content-type"] ?? "none");
    throw new StatusError(
      "NotAcceptable",
      `ctrlmesh: the labels in the API server's reply cannot be read (content type ${type})`,
    );
  }
  const body = await readBody(reply.body, MAX_OBJECT_BYTES);
  return { reply: { ...reply, body }, objects: objectsIn(encoding, body) };
}

// The reader of watch events tells an object from a Table, which is JSON always.
function objectsIn(encoding: Encoding, body: Uint8Array): readonly ItemMeta[] {
  if (encoding === "protobuf") return [readObjectMeta(encoding, body, WITH_LABELS)];
  const { objects, unreadable } = readFrame("json", Buffer.concat([EVENT_HEAD, body, EVENT_TAIL]), WITH_LABELS);
  if (unreadable > 0 || objects.length === 0)
    throw codecError("CODEC_AMBIGUOUS", "reading an object: its metadata cannot be read with certainty");
  return objects;
}
