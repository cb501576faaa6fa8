// Decodes protobuf bytes into the objects that @grpc/proto-loader makes, within a memory budget: gRPC bounds
// only the bytes of a message, and 20 MB took 2.9 GB. Invariant: nothing is made before its size is counted.
import type { MemoryBudget } from "../base/bounded-json.ts";
import { MeshError } from "../base/errors.ts";

/** A message of the contract, as @grpc/proto-loader describes it. */
export interface MessageShape {
  readonly fields: ReadonlyMap<number, FieldShape>;
  /** The values of absent fields. */
  readonly defaults: Readonly<Record<string, unknown>>;
}

export interface FieldShape {
  readonly name: string;
  readonly isRepeated: boolean;
  /** The name of the oneof that has the field. */
  readonly oneof: string | undefined;
  readonly kind: "string" | "bytes" | "bool" | "uint32" | "uint64" | "enum" | "message";
  /** The names of an enum by number. */
  readonly values?: ReadonlyMap<number, string>;
  /** A function, since the message may be described later. */
  readonly message?: () => MessageShape;
}

/** The approximate memory of a value in Node, in bytes. A string has the bytes of its text in addition. */
const SIZE = { message: 256, string: 48, bytes: 128, number: 16 };
const MAX_UINT32 = 2 ** 32 - 1;
const NUMERIC: ReadonlySet<FieldShape["kind"]> = new Set(["bool", "uint32", "uint64", "enum"]);
const [VARINT, FIXED_64, LENGTH, FIXED_32] = [0, 1, 2, 5];

/**
 * Decodes a message.
 * @param memory what the message takes is subtracted from it, even if the message is refused
 * @throws MeshError `MESSAGE_INVALID`, also if the budget is not enough
 */
export function decodeBounded<T>(shape: MessageShape, bytes: Uint8Array, memory: MemoryBudget): T {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  let position = 0;

  const count = (size: number) => {
    memory.left -= size;
    if (memory.left < 0) throw invalid("it takes too much memory");
  };
  const skip = (length: number, end: number) => {
    if (length > end - position) throw invalid("it is cut off");
    position += length;
    return position;
  };
  const varint = (end: number): number => {
    let value = 0;
    for (let factor = 1, length = 1; length <= 10; factor *= 128, length++) {
      if (position >= end) throw invalid("it is cut off");
      const byte = buffer[position++] ?? 0;
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
    throw invalid("a number has more than ten bytes");
  };
  const skipUnknown = (wireType: number, end: number) => {
    count(SIZE.number); // it takes no memory, but time
    if (wireType === VARINT) varint(end);
    else if (wireType === LENGTH) skip(varint(end), end);
    else if (wireType === FIXED_64) skip(8, end);
    else if (wireType === FIXED_32) skip(4, end);
    else throw invalid(`wire type ${wireType} is not known`);
  };
  const numeric = ({ name, kind, values }: FieldShape, end: number): unknown => {
    count(SIZE.number);
    const value = varint(end);
    if (kind === "bool") return value !== 0;
    if (kind === "uint32" && value > MAX_UINT32) throw invalid(`field ${name} is too large`);
    return values?.get(value) ?? value;
  };
  const delimited = (field: FieldShape, end: number): unknown => {
    const length = varint(end);
    const start = position;
    const stop = skip(length, end);
    if (field.kind === "string") {
      count(SIZE.string + length);
      return buffer.toString("utf8", start, stop);
    }
    if (field.kind === "bytes") {
      count(SIZE.bytes);
      return buffer.subarray(start, stop);
    }
    position = start;
    return message((field.message as () => MessageShape)(), stop);
  };
  const value = (field: FieldShape, wireType: number, end: number): unknown => {
    const isNumeric = NUMERIC.has(field.kind);
    if (wireType !== (isNumeric ? VARINT : LENGTH)) throw invalid(`field ${field.name} has wire type ${wireType}`);
    return isNumeric ? numeric(field, end) : delimited(field, end);
  };
  const append = (list: unknown[], field: FieldShape, wireType: number, end: number) => {
    if (wireType !== LENGTH || !NUMERIC.has(field.kind)) {
      list.push(value(field, wireType, end));
      return;
    }
    const length = varint(end);
    const start = position;
    const stop = skip(length, end);
    for (position = start; position < stop; ) list.push(numeric(field, stop)); // packed
  };
  const message = ({ fields, defaults }: MessageShape, end: number): unknown => {
    count(SIZE.message);
    const result: Record<string, unknown> = { ...defaults };
    while (position < end) {
      const tag = varint(end);
      const [number, wireType] = [Math.floor(tag / 8), tag % 8];
      const field = fields.get(number);
      if (field === undefined) skipUnknown(wireType, end);
      else if (field.isRepeated) {
        if (result[field.name] === defaults[field.name]) result[field.name] = [];
        append(result[field.name] as unknown[], field, wireType, end);
      } else {
        if (field.oneof !== undefined) clearOneof(result, fields, field.oneof);
        result[field.name] = value(field, wireType, end);
        if (field.oneof !== undefined) result[field.oneof] = field.name;
      }
    }
    return result;
  };
  return message(shape, buffer.length) as T;
}

// The last member on the wire counts, and the others are as if they were not there.
function clearOneof(result: Record<string, unknown>, fields: MessageShape["fields"], oneof: string): void {
  for (const { name, oneof: other } of fields.values()) if (other === oneof) delete result[name];
}

function invalid(why: string): MeshError {
  return new MeshError("MESSAGE_INVALID", `decoding a message: ${why}`);
}
