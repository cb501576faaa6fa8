// Decodes Kubernetes protobuf bodies (k8s\0 envelope) into their JSON form, since kubectl and controller-runtime send built-in
// kinds in protobuf. Answers are JSON, as clients decode by the answer's content type. A field that the table lacks is refused
// with 415, so nothing is dropped silently.
import { StatusError } from "../../src/kube/status.ts";
import { asArray, asObject, isObject, type JsonObject } from "./model/object.ts";
import { MESSAGES } from "./protobuf-messages.ts";

interface Field {
  readonly name: string;
  readonly type: string;
  readonly repeated: boolean;
  readonly map: boolean;
  readonly pointer: boolean;
  readonly inline: boolean;
}

interface RawField {
  readonly number: number;
  /** A varint is a bigint, a length-delimited value is bytes. */
  readonly value: bigint | Buffer;
}

const MAGIC = Buffer.from("k8s\0");
const FIELDS = new Map(Object.entries(MESSAGES).map(([type, fields]) => [type, new Map(fields.split(", ").map(parseField))]));
const NO_FIELDS: ReadonlyMap<number, Field> = new Map();

/** @throws StatusError UnsupportedMediaType */
export function decodeProtobuf(body: Buffer): JsonObject {
  if (!body.subarray(0, 4).equals(MAGIC)) throw unsupported("no k8s envelope");
  const envelope = new Map(readFields(body.subarray(4)).map(({ number, value }) => [number, value]));
  const typeMeta = new Map(readFields(bytesOf(envelope.get(1))).map(({ number, value }) => [number, bytesOf(value).toString()]));
  const kind = typeMeta.get(2) ?? "";
  if (MESSAGES[kind] === undefined) throw unsupported(`kind ${kind}`);
  return { apiVersion: typeMeta.get(1) ?? "", kind, ...decodeMessage(bytesOf(envelope.get(2)), kind) };
}

function decodeMessage(bytes: Buffer, type: string): JsonObject {
  const fields = FIELDS.get(type) ?? NO_FIELDS;
  const result: JsonObject = {};
  for (const { number, value } of readFields(bytes)) {
    const field = fields.get(number);
    if (field === undefined) throw unsupported(`field ${number} of ${type}`);
    setField(result, field, value);
  }
  return result;
}

function setField(result: JsonObject, field: Field, value: bigint | Buffer): void {
  const { name, type } = field;
  if (field.map) {
    const entry = new Map(readFields(bytesOf(value)).map((part) => [part.number, part.value]));
    const item = entry.get(2);
    result[name] = { ...asObject(result[name]), [bytesOf(entry.get(1)).toString()]: decodeValue(item ?? Buffer.alloc(0), type) };
  } else if (field.repeated) {
    result[name] = [...asArray(result[name]), decodeValue(value, type)];
  } else {
    const decoded = decodeValue(value, type);
    if (field.inline) Object.assign(result, decoded);
    // Go always sends fields that are not pointers, so their zero value means unset.
    else if (field.pointer || !isZero(decoded)) result[name] = decoded;
  }
}

function decodeValue(value: bigint | Buffer, type: string): unknown {
  if (typeof value === "bigint") return type === "bool" ? value !== 0n : Number(BigInt.asIntN(64, value));
  switch (type) {
    case "string":
      return value.toString("utf8");
    case "bytes":
      return value.toString("base64");
    case "Time":
      return decodeTime(value, 3);
    case "MicroTime":
      return decodeTime(value, 6);
    case "Quantity":
      return scalars(value).get(1)?.toString() ?? "0";
    case "FieldsV1":
      return JSON.parse(scalars(value).get(1)?.toString() ?? "{}") as unknown;
    case "IntOrString": {
      const parts = scalars(value);
      return parts.get(1) === 1n
        ? (parts.get(3)?.toString() ?? "")
        : Number(BigInt.asIntN(64, BigInt((parts.get(2) as bigint | undefined) ?? 0n)));
    }
    case "ExtraValue":
      return readFields(value).map((item) => bytesOf(item.value).toString());
    default:
      return decodeMessage(value, type);
  }
}

function decodeTime(value: Buffer, digits: 3 | 6): string | null {
  const parts = scalars(value);
  if (parts.size === 0) return null;
  const seconds = Number(BigInt.asIntN(64, BigInt((parts.get(1) as bigint | undefined) ?? 0n)));
  const text = new Date(seconds * 1000).toISOString().slice(0, 19);
  const micros = Math.floor(Number((parts.get(2) as bigint | undefined) ?? 0n) / 1000);
  return digits === 6 ? `${text}.${String(micros).padStart(6, "0")}Z` : `${text}Z`;
}

function scalars(value: Buffer): Map<number, bigint | Buffer> {
  return new Map(readFields(value).map((part) => [part.number, part.value]));
}

function isZero(value: unknown): boolean {
  return value === "" || value === 0 || value === false || value === null || (isObject(value) && Object.keys(value).length === 0);
}

function bytesOf(value: bigint | Buffer | undefined): Buffer {
  return Buffer.isBuffer(value) ? value : Buffer.alloc(0);
}

function parseField(text: string): [number, Field] {
  const [number, name = "", type = ""] = text.split(" ");
  return [
    Number(number),
    {
      name: name.replace(/[?^]$/, ""),
      type: type.replace(/\[\]$|\{\}$/, ""),
      repeated: type.endsWith("[]"),
      map: type.endsWith("{}"),
      pointer: name.endsWith("?"),
      inline: name.endsWith("^"),
    },
  ];
}

function readFields(bytes: Buffer): RawField[] {
  const fields: RawField[] = [];
  for (let at = 0; at < bytes.length; ) {
    const [tag, start] = readVarint(bytes, at);
    const number = Number(tag >> 3n);
    switch (Number(tag & 7n)) {
      case 0: {
        const [value, next] = readVarint(bytes, start);
        fields.push({ number, value });
        at = next;
        break;
      }
      case 2: {
        const [length, from] = readVarint(bytes, start);
        const end = from + Number(length);
        if (end > bytes.length) throw unsupported("a field beyond the end");
        fields.push({ number, value: bytes.subarray(from, end) });
        at = end;
        break;
      }
      default:
        throw unsupported(`wire type ${tag & 7n}`);
    }
  }
  return fields;
}

function readVarint(bytes: Buffer, start: number): [bigint, number] {
  let value = 0n;
  for (let index = 0; index < 10; index++) {
    const byte = bytes[start + index];
    if (byte === undefined) break;
    value |= BigInt(byte & 0x7f) << BigInt(7 * index);
    if (byte < 0x80) return [value, start + index + 1];
  }
  throw unsupported("a malformed number");
}

function unsupported(what: string): StatusError {
  return new StatusError(
    "UnsupportedMediaType",
    `reading a protobuf body: localkube does not know ${what}; send application/json`,
  );
}
