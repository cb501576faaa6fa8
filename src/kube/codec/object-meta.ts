// Reads the metadata of the object in a request's body, when the path does not name the object (a create).
// Metadata that two decoders could read differently is an error. Called by the proxy's election layer and
// isolate layer on complete bodies.

import { asBuffer, codecError, type Encoding, type ItemMeta, type ReadOptions } from "./base/types.ts";
import { JsonObjectReader } from "./json/object.ts";
import { endsEarly, walkerAt } from "./json/text.ts";
import { readEnvelope } from "./protobuf/envelope.ts";
import { readProtobufMeta } from "./protobuf/object.ts";

/**
 * The namespace and name of the object, and its labels if requested. Throws `CODEC_MALFORMED`,
 * `CODEC_AMBIGUOUS`.
 */
export function readObjectMeta(encoding: Encoding, body: Uint8Array, options: ReadOptions = {}): ItemMeta {
  const meta = encoding === "json" ? readJsonMeta(body, options) : readProtobufMeta(readEnvelope(body).raw, options);
  if (meta === undefined) throw codecError("CODEC_AMBIGUOUS", "reading an object: its metadata cannot be read with certainty");
  return meta;
}

function readJsonMeta(body: Uint8Array, options: ReadOptions): ItemMeta | undefined {
  const reader = new JsonObjectReader(walkerAt(asBuffer(body)), options);
  reader.begin("item");
  if (!reader.read()) throw endsEarly();
  return reader.meta;
}
