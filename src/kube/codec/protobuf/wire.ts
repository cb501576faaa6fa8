// The protobuf wire format as Kubernetes uses it. Where decoders differ it throws: groups, field numbers over
// 29 bits, lengths beyond the message, varints over 2^53.
import { asBuffer } from "../base/bytes.ts";
import { codecError } from "../base/types.ts";

const VARINT = 0;
const FIXED64 = 1;
export const BYTES = 2;
const FIXED32 = 5;

/** The first bytes of every protobuf body and embedded object of Kubernetes. */
export const ENVELOPE_PREFIX = Buffer.from([0x6b, 0x38, 0x73, 0x00]); // k8s\0

const NO_BYTES = Buffer.alloc(0);
const MAX_TAG = 0xffff_ffff; // 29 bits of number, 3 of wire type

/**
 * Walks the fields of a message between two positions of a buffer. `next` sets the properties to the field's
 * place. It returns false at the end, and when the bytes up to `end` do not hold the whole field; then
 * `incomplete` is true.
 */
export class FieldCursor {
  bytes: Buffer = NO_BYTES;
  position = 0;
  end = 0;
  number = 0;
  wireType = 0;
  /** Where the field's tag begins. */
  fieldStart = 0;
  /** Where the value begins; for BYTES after the length. */
  valueStart = 0;
  /** Where the field ends. May be after `end` if `incomplete`; 0 if it is not known yet. */
  valueEnd = 0;
  incomplete = false;
  #varint = 0;

  reset(bytes: Buffer, position: number, end: number): this {
    this.bytes = bytes;
    this.position = position;
    this.end = end;
    this.incomplete = false;
    return this;
  }

  next(): boolean {
    this.fieldStart = this.position;
    this.valueEnd = 0;
    this.incomplete = false;
    if (this.position === this.end) return false;
    if (!this.#readTag() || !this.#readValue()) {
      this.position = this.fieldStart;
      this.incomplete = true;
      return false;
    }
    this.position = this.valueEnd;
    return true;
  }

  #readTag(): boolean {
    this.valueStart = this.position;
    if (!this.#readVarint()) return false;
    const tag = this.#varint;
    this.number = Math.floor(tag / 8);
    this.wireType = tag % 8;
    if (tag > MAX_TAG || this.number === 0) throw malformed("a field number is illegal");
    return true;
  }

  #readValue(): boolean {
    switch (this.wireType) {
      case BYTES:
        if (!this.#readVarint()) return false;
        this.valueEnd = this.valueStart + this.#varint;
        break;
      case VARINT: {
        const start = this.valueStart;
        if (!this.#readVarint(false)) return false;
        this.valueEnd = this.valueStart;
        this.valueStart = start;
        break;
      }
      case FIXED64:
        this.valueEnd = this.valueStart + 8;
        break;
      case FIXED32:
        this.valueEnd = this.valueStart + 4;
        break;
      default:
        throw malformed(`wire type ${this.wireType} is unknown`);
    }
    return this.valueEnd <= this.end;
  }

  // Reads a varint at `valueStart` and moves after it. A value that is only skipped may have all 64 bits.
  #readVarint(exact = true): boolean {
    const { bytes, end } = this;
    const start = this.valueStart;
    let value = 0;
    let scale = 1;
    for (let at = start; at < end; at++) {
      const byte = bytes[at] as number;
      if (at - start === 10) throw malformed("a varint is over ten bytes");
      value += (byte & 0x7f) * scale;
      scale *= 128;
      if (byte < 0x80) {
        if (exact && value > Number.MAX_SAFE_INTEGER) throw malformed("a number is over 2^53");
        this.#varint = value;
        this.valueStart = at + 1;
        return true;
      }
    }
    if (end - start >= 10) throw malformed("a varint is over ten bytes");
    return false;
  }

  value(): Buffer {
    return this.bytes.subarray(this.valueStart, this.valueEnd);
  }
}

/** The fields of a whole message, all with the same cursor. Throws `CODEC_MALFORMED` at an early end. */
export function* fieldsOf(message: Uint8Array): Generator<FieldCursor, void, undefined> {
  const cursor = new FieldCursor().reset(asBuffer(message), 0, message.length);
  while (cursor.next()) yield cursor;
  if (cursor.incomplete) throw malformed("a message ends inside a field");
}

export function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length++;
  return length;
}

/** @param value 0 or more */
export function encodeVarint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}

/** The tag and length before the value of a BYTES field. */
export function encodeHeader(number: number, length: number): Buffer {
  return Buffer.concat([encodeVarint(number * 8 + BYTES), encodeVarint(length)]);
}

/** The length of a BYTES field with a number below 16, for a value of that length. */
export function bytesFieldLength(valueLength: number): number {
  return 1 + varintLength(valueLength) + valueLength;
}

/** Writes the tag and length before the value of such a field. Returns the position of the value. */
export function writeHeader(to: Buffer, position: number, number: number, length: number): number {
  let at = to.writeUInt8(number * 8 + BYTES, position);
  let rest = length;
  for (; rest >= 128; rest = Math.floor(rest / 128)) at = to.writeUInt8((rest % 128) | 0x80, at);
  return to.writeUInt8(rest, at);
}

/** A BYTES field: tag, length, value. */
export function encodeBytes(number: number, value: Uint8Array): Buffer {
  return Buffer.concat([encodeHeader(number, value.length), value]);
}

/** A string field; empty for undefined, as proto2 has no default to send. */
export function encodeString(number: number, value: string | undefined): Buffer {
  return value === undefined ? Buffer.alloc(0) : encodeBytes(number, Buffer.from(value));
}

/** A varint field; empty for undefined. */
export function encodeNumber(number: number, value: number | undefined): Buffer {
  return value === undefined ? Buffer.alloc(0) : Buffer.concat([encodeVarint(number * 8 + VARINT), encodeVarint(value)]);
}

/**
 * The message with another value in one BYTES field. The message itself if it has no such field, or if
 * `replace` returns the same array. Throws `CODEC_AMBIGUOUS` if the field occurs twice.
 */
export function replaceField(message: Uint8Array, number: number, replace: (value: Buffer) => Uint8Array): Uint8Array {
  let found: { readonly start: number; readonly end: number; readonly value: Buffer } | undefined;
  for (const field of fieldsOf(message)) {
    if (field.number !== number) continue;
    if (field.wireType !== BYTES) throw malformed(`field ${number} has wire type ${field.wireType}`);
    if (found !== undefined) throw codecError("CODEC_AMBIGUOUS", `rewriting protobuf: field ${number} occurs twice`);
    found = { start: field.fieldStart, end: field.valueEnd, value: field.value() };
  }
  if (found === undefined) return message;
  const value = replace(found.value);
  if (value === found.value) return message;
  return Buffer.concat([message.subarray(0, found.start), encodeBytes(number, value), message.subarray(found.end)]);
}

function malformed(what: string): Error {
  return codecError("CODEC_MALFORMED", `reading protobuf: ${what}`);
}
