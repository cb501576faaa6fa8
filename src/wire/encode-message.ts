// Encodes a message of the contract. Invariant: the bytes are those of protobufjs, which earlier versions use,
// because the hash of a table is that of its bytes. It writes from the end to the start, so that the length of
// a part is known when its head is written.
import { MeshError } from "../base/errors.ts";
import type { FieldShape, MessageShape } from "./bounded-decoder.ts";

const FIRST_BYTES = 512;
const [VARINT, LENGTH] = [0, 2];

/** @throws MeshError `MESSAGE_INVALID` if an enum has no such value */
export function encodeMessage(shape: MessageShape, message: object): Buffer {
  /** Replaced by a larger one, so read it only after `takeBefore`. */
  let buffer = Buffer.allocUnsafe(FIRST_BYTES);
  /** Where the written part starts. */
  let start = buffer.length;

  const takeBefore = (length: number): number => {
    if (length > start) {
      const written = buffer.length - start;
      const larger = Buffer.allocUnsafe(2 * (written + length));
      buffer.copy(larger, larger.length - written, start);
      start = larger.length - written;
      buffer = larger;
    }
    start -= length;
    return start;
  };
  const varint = (value: number) => {
    let length = 1;
    for (let left = value; left > 127; left = Math.floor(left / 128)) length++;
    let at = takeBefore(length);
    let left = value;
    for (; left > 127; left = Math.floor(left / 128)) buffer[at++] = (left % 128) + 128;
    buffer[at] = left;
  };
  const head = (number: number, wireType: number) => varint(number * 8 + wireType);
  const content = (field: FieldShape, value: unknown) => {
    if (field.kind === "string") {
      const text = value as string;
      const at = takeBefore(Buffer.byteLength(text));
      buffer.write(text, at);
    } else if (field.kind === "bytes") {
      const bytes = value as Uint8Array;
      const at = takeBefore(bytes.length);
      buffer.set(bytes, at);
    } else parts((field.message as () => MessageShape)(), value as Values);
  };
  const withLength = (number: number, write: () => void) => {
    const before = buffer.length - start;
    write();
    varint(buffer.length - start - before);
    head(number, LENGTH);
  };
  const one = (number: number, field: FieldShape, value: unknown) => {
    if (!isNumeric(field)) return withLength(number, () => content(field, value));
    varint(numberOf(field, value));
    head(number, VARINT);
  };
  const list = (number: number, field: FieldShape, values: readonly unknown[]) => {
    if (values.length === 0) return;
    if (isNumeric(field)) return withLength(number, () => backwards(values, (value) => varint(numberOf(field, value)))); // packed
    backwards(values, (value) => one(number, field, value));
  };
  const parts = ({ fields }: MessageShape, values: Values) => {
    backwards([...fields], ([number, field]) => {
      const value = values[field.name];
      if (value === undefined || value === null) return;
      if (field.isRepeated) list(number, field, value as readonly unknown[]);
      else one(number, field, value);
    });
  };
  parts(shape, message as Values);
  return Buffer.from(buffer.subarray(start));
}

type Values = Readonly<Record<string, unknown>>;

function backwards<T>(values: readonly T[], write: (value: T) => void): void {
  for (let index = values.length - 1; index >= 0; index--) write(values[index] as T);
}

function isNumeric({ kind }: FieldShape): boolean {
  return kind === "bool" || kind === "uint32" || kind === "uint64" || kind === "enum";
}

function numberOf({ name, values }: FieldShape, value: unknown): number {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value === "number") return value;
  for (const [number, text] of values ?? []) if (text === value) return number;
  throw new MeshError("MESSAGE_INVALID", `encoding a message: ${name} has no value ${String(value)}`);
}
