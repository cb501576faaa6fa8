// Reads whose object a protobuf message is, and what kind an envelope says that it holds. Field numbers are those of the
// published generated.proto files: every object has ObjectMeta as field 1, which has name = 1 and namespace = 3. Invariant:
// `readable` only if no field that is read stands there twice, where decoders merge or let the last one win.
import { equalsAscii } from "./json-object.ts";
import { BYTES, ENVELOPE_PREFIX, FieldCursor, fieldsOf } from "./protobuf-wire.ts";
import { asBuffer, codecError, type ItemMeta } from "./types.ts";

const OBJECT_META = 1;
const NAME = 1;
const NAMESPACE = 3;

/** Reads one object at a time; the fields are of the last one. */
export class ProtobufObjectReader {
  readable = false;
  namespace = "";
  name = "";
  readonly #object = new FieldCursor();
  readonly #meta = new FieldCursor();
  #lastNamespace = "";

  /** Reads the object message between two positions. A message that cannot be read is not readable; nothing is thrown. */
  read(bytes: Buffer, start: number, end: number): void {
    this.readable = true;
    this.namespace = "";
    this.name = "";
    let seen = false;
    const fields = this.#object.reset(bytes, start, end);
    try {
      while (fields.next()) {
        if (fields.number !== OBJECT_META) continue;
        if (seen || fields.wireType !== BYTES) this.readable = false;
        seen = true;
        this.#readMeta(bytes, fields.valueStart, fields.valueEnd);
      }
    } catch {
      this.readable = false;
    }
    if (!seen || fields.incomplete) this.readable = false;
  }

  #readMeta(bytes: Buffer, start: number, end: number): void {
    const fields = this.#meta.reset(bytes, start, end);
    let nameSeen = false;
    let namespaceSeen = false;
    while (fields.next()) {
      if (fields.number === NAME) {
        if (nameSeen || fields.wireType !== BYTES) this.readable = false;
        nameSeen = true;
        this.name = this.#text(bytes, fields.valueStart, fields.valueEnd);
      } else if (fields.number === NAMESPACE) {
        if (namespaceSeen || fields.wireType !== BYTES) this.readable = false;
        namespaceSeen = true;
        this.namespace = this.#namespaceText(bytes, fields.valueStart, fields.valueEnd);
      }
    }
    if (fields.incomplete) this.readable = false;
  }

  // Lists are sorted by namespace, so the last one is most often the next one.
  #namespaceText(bytes: Buffer, start: number, end: number): string {
    if (!equalsAscii(bytes, start, end, this.#lastNamespace)) this.#lastNamespace = this.#text(bytes, start, end);
    return this.#lastNamespace;
  }

  #text(bytes: Buffer, start: number, end: number): string {
    let seen = 0;
    for (let at = start; at < end; at++) seen |= bytes[at] as number;
    if (seen < 0x80) return bytes.toString("latin1", start, end);
    const text = bytes.toString("utf8", start, end);
    if (text.includes("\ufffd")) this.readable = false;
    return text;
  }
}

/** runtime.TypeMeta of an envelope. */
export interface EnvelopeType {
  readonly apiVersion: string;
  readonly kind: string;
}

/** Reads a runtime.TypeMeta message. */
export function readEnvelopeType(message: Uint8Array): EnvelopeType {
  const texts = new Map<number, string>();
  for (const field of fieldsOf(message)) {
    if (field.wireType !== BYTES) continue;
    if (texts.has(field.number)) throw codecError("CODEC_MALFORMED", "reading protobuf: two types in one envelope");
    texts.set(field.number, field.value().toString("utf8"));
  }
  return { apiVersion: texts.get(1) ?? "", kind: texts.get(2) ?? "" };
}

/** True for metav1.Status. */
export function isStatusType({ apiVersion, kind }: EnvelopeType): boolean {
  return kind === "Status" && apiVersion === "v1";
}

/** A whole runtime.Unknown with its prefix. */
export interface Envelope {
  readonly type: EnvelopeType;
  /** The object's message. */
  readonly raw: Buffer;
}

/** Reads a whole enveloped object. Throws `CODEC_MALFORMED`. */
export function readEnvelope(body: Uint8Array): Envelope {
  const bytes = asBuffer(body);
  if (!bytes.subarray(0, 4).equals(ENVELOPE_PREFIX)) throw codecError("CODEC_MALFORMED", "reading protobuf: no k8s prefix");
  let type: EnvelopeType | undefined;
  let raw: Buffer | undefined;
  for (const field of fieldsOf(bytes.subarray(4))) {
    if (field.number > 2 || field.wireType !== BYTES) continue;
    if ((field.number === 1 ? type : raw) !== undefined)
      throw codecError("CODEC_MALFORMED", "reading protobuf: two objects in one envelope");
    if (field.number === 1) type = readEnvelopeType(field.value());
    else raw = field.value();
  }
  return { type: type ?? { apiVersion: "", kind: "" }, raw: raw ?? bytes.subarray(bytes.length) };
}

/** The metadata of one object message, or undefined if it cannot be read with certainty. */
export function readObjectMeta(raw: Buffer): ItemMeta | undefined {
  const reader = new ProtobufObjectReader();
  reader.read(raw, 0, raw.length);
  return reader.readable ? { namespace: reader.namespace, name: reader.name } : undefined;
}
