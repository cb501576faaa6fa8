// The envelope of protobuf objects: `k8s\0`, then runtime.Unknown {1: type, 2: the object's message}.
import { asBuffer } from "../base/bytes.ts";
import { codecError, type ObjectType } from "../base/types.ts";
import { BYTES, ENVELOPE_PREFIX, encodeBytes, encodeString, fieldsOf } from "./wire.ts";

export function readEnvelopeType(message: Uint8Array): ObjectType {
  const texts = new Map<number, string>();
  for (const field of fieldsOf(message)) {
    if (field.wireType !== BYTES) continue;
    if (texts.has(field.number)) throw codecError("CODEC_MALFORMED", "reading protobuf: the envelope has two types");
    texts.set(field.number, field.value().toString("utf8"));
  }
  return { apiVersion: texts.get(1) ?? "", kind: texts.get(2) ?? "" };
}

/** @param raw the object's message */
export function encodeEnvelope(type: ObjectType, raw: Uint8Array): Buffer {
  const { head, tail } = envelopeAround(type);
  return Buffer.concat([head, encodeBytes(2, raw), tail]);
}

/** What comes before and after the field with the object's message. */
export function envelopeAround({ apiVersion, kind }: ObjectType): { readonly head: Buffer; readonly tail: Buffer } {
  const type = Buffer.concat([encodeString(1, apiVersion), encodeString(2, kind)]);
  const none = Buffer.alloc(0);
  return {
    head: Buffer.concat([ENVELOPE_PREFIX, encodeBytes(1, type)]),
    tail: Buffer.concat([encodeBytes(3, none), encodeBytes(4, none)]),
  };
}

interface Envelope {
  readonly type: ObjectType;
  readonly raw: Buffer;
}

/** Throws `CODEC_MALFORMED`. */
export function readEnvelope(body: Uint8Array): Envelope {
  const bytes = asBuffer(body);
  if (!bytes.subarray(0, 4).equals(ENVELOPE_PREFIX))
    throw codecError("CODEC_MALFORMED", "reading protobuf: the k8s prefix is missing");
  let type: ObjectType | undefined;
  let raw: Buffer | undefined;
  for (const field of fieldsOf(bytes.subarray(4))) {
    if (field.number > 2 || field.wireType !== BYTES) continue;
    if ((field.number === 1 ? type : raw) !== undefined)
      throw codecError("CODEC_MALFORMED", "reading protobuf: the envelope has two objects");
    if (field.number === 1) type = readEnvelopeType(field.value());
    else raw = field.value();
  }
  return { type: type ?? { apiVersion: "", kind: "" }, raw: raw ?? bytes.subarray(bytes.length) };
}
