// Reads the metadata of a protobuf object. An object is `readable` only if no field that this file reads
// occurs twice: some decoders merge the values of such a field, and others take the last one. The field
// numbers are those of the generated.proto files, where every object has ObjectMeta as field 1.
import { equalsAscii } from "../base/bytes.ts";
import { type ItemMeta, noLabels, type ReadOptions } from "../base/types.ts";
import { readEnvelope } from "./envelope.ts";
import { BYTES, FieldCursor } from "./wire.ts";

const OBJECT_META = 1;
const NAME = 1;
const NAMESPACE = 3;
const RESOURCE_VERSION = 6;
const LABELS = 11;
const NO_LABELS = noLabels();

/** Reads one object at a time. The properties describe the last one. */
export class ProtobufObjectReader {
  readable = false;
  namespace = "";
  name = "";
  /** Empty unless labels were requested. */
  labels: Record<string, string> = NO_LABELS;
  /** "" unless versions were requested. */
  resourceVersion = "";
  readonly #object = new FieldCursor();
  readonly #meta = new FieldCursor();
  readonly #label: FieldCursor | undefined;
  readonly #readsVersions: boolean;
  #lastNamespace = "";

  constructor({ labels = false, versions = false }: ReadOptions = {}) {
    this.#label = labels ? new FieldCursor() : undefined;
    this.#readsVersions = versions;
  }

  /** Undefined if the metadata cannot be read with certainty. */
  get meta(): ItemMeta | undefined {
    const { readable, namespace, name, resourceVersion } = this;
    if (!readable) return undefined;
    const meta = this.#label !== undefined ? { namespace, name, labels: this.labels } : { namespace, name };
    return this.#readsVersions ? { ...meta, resourceVersion } : meta;
  }

  /** Reads the object message between two positions. Never throws: a bad message is not readable. */
  read(bytes: Buffer, start: number, end: number): void {
    this.readable = true;
    this.namespace = "";
    this.name = "";
    this.resourceVersion = "";
    if (this.#label !== undefined) this.labels = noLabels();
    let hasMeta = false;
    const fields = this.#object.reset(bytes, start, end);
    try {
      while (fields.next()) {
        if (fields.number !== OBJECT_META) continue;
        if (hasMeta || fields.wireType !== BYTES) this.readable = false;
        hasMeta = true;
        this.#readMeta(bytes, fields.valueStart, fields.valueEnd);
      }
    } catch {
      this.readable = false;
    }
    if (!hasMeta || fields.incomplete) this.readable = false;
  }

  #readMeta(bytes: Buffer, start: number, end: number): void {
    const fields = this.#meta.reset(bytes, start, end);
    let nameSeen = false;
    let namespaceSeen = false;
    let versionSeen = false;
    while (fields.next()) {
      if (fields.number === NAME) {
        if (nameSeen || fields.wireType !== BYTES) this.readable = false;
        nameSeen = true;
        this.name = this.#text(bytes, fields.valueStart, fields.valueEnd);
      } else if (fields.number === NAMESPACE) {
        if (namespaceSeen || fields.wireType !== BYTES) this.readable = false;
        namespaceSeen = true;
        this.namespace = this.#namespaceText(bytes, fields.valueStart, fields.valueEnd);
      } else if (this.#label !== undefined && fields.number === LABELS) {
        if (fields.wireType !== BYTES) this.readable = false;
        this.#readLabel(this.#label.reset(bytes, fields.valueStart, fields.valueEnd));
      } else if (this.#readsVersions && fields.number === RESOURCE_VERSION) {
        // The owner does not depend on the version. So a second version makes only the version unknown.
        const isSure = !versionSeen && fields.wireType === BYTES;
        this.resourceVersion = isSure ? bytes.toString("latin1", fields.valueStart, fields.valueEnd) : "";
        versionSeen = true;
      }
    }
    if (fields.incomplete) this.readable = false;
  }

  // An entry of the map of labels is {1: key, 2: value}. A missing key or value is "".
  #readLabel(fields: FieldCursor): void {
    const entry: (string | undefined)[] = [];
    while (fields.next()) {
      const { number } = fields;
      if (number > 2) continue;
      if (fields.wireType !== BYTES || entry[number - 1] !== undefined) this.readable = false;
      entry[number - 1] = this.#text(fields.bytes, fields.valueStart, fields.valueEnd);
    }
    const [key = "", value = ""] = entry;
    if (fields.incomplete || key in this.labels) this.readable = false;
    this.labels[key] = value;
  }

  // Lists are sorted by namespace, so the next namespace is most often the same.
  #namespaceText(bytes: Buffer, start: number, end: number): string {
    if (!equalsAscii(bytes, start, end, this.#lastNamespace)) this.#lastNamespace = this.#text(bytes, start, end);
    return this.#lastNamespace;
  }

  #text(bytes: Buffer, start: number, end: number): string {
    let bits = 0;
    for (let at = start; at < end; at++) bits |= bytes[at] as number;
    if (bits < 0x80) return bytes.toString("latin1", start, end);
    const text = bytes.toString("utf8", start, end);
    if (text.includes("\ufffd")) this.readable = false;
    return text;
  }
}

export function readProtobufMeta(raw: Buffer, options: ReadOptions): ItemMeta | undefined {
  const reader = new ProtobufObjectReader(options);
  reader.read(raw, 0, raw.length);
  return reader.meta;
}

export function readObjectMeta(body: Uint8Array, options: ReadOptions): ItemMeta | undefined {
  return readProtobufMeta(readEnvelope(body).raw, options);
}
