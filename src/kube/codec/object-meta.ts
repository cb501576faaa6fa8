// Reads whose object a request's body is, where the path does not say it (a create). Invariant: what two decoders could
// read differently is an error. Called by the proxy's election layer, on bodies that are held whole.
import { NEED_MORE } from "./json-cursor.ts";
import { JsonObjectReader } from "./json-object.ts";
import { readEnvelope, readObjectMeta as readProtobufMeta } from "./protobuf-object.ts";
import { asBuffer, codecError, type Encoding, type ItemMeta } from "./types.ts";

/** The namespace and name of one object. Throws `CODEC_MALFORMED`, `CODEC_AMBIGUOUS`. */
export function readObjectMeta(encoding: Encoding, body: Uint8Array): ItemMeta {
  const meta = encoding === "json" ? readJsonMeta(body) : readProtobufMeta(readEnvelope(body).raw);
  if (meta === undefined) throw codecError("CODEC_AMBIGUOUS", "reading an object: its metadata cannot be read with certainty");
  return meta;
}

function readJsonMeta(body: Uint8Array): ItemMeta | undefined {
  const reader = new JsonObjectReader();
  reader.cursor.reset(asBuffer(body), 0, body.length);
  try {
    reader.readObject();
  } catch (thrown) {
    throw thrown === NEED_MORE ? codecError("CODEC_MALFORMED", "reading an object: the JSON text ends inside of it") : thrown;
  }
  return reader.readable ? { namespace: reader.namespace, name: reader.name } : undefined;
}
