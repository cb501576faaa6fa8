// Just enough of the protobuf wire format to take a message apart and put it together without decoding it: for what is sent to many
// unchanged. Pure. Used by snapshot-encoder.ts.

/** Wire type of lengths: strings, bytes and messages. */
export const LENGTH_DELIMITED = 2;

/** One field as it stands in the bytes. */
export interface Field {
  readonly number: number;
  readonly wireType: number;
  /** Tag, length and value. */
  readonly whole: Uint8Array;
  /** The value of a length-delimited field; else empty. */
  readonly value: Uint8Array;
}

const MAX_SAFE_SHIFT = 2 ** 53;

/** The top-level fields of a message; undefined if the bytes are none. */
export function fieldsOf(bytes: Uint8Array): Field[] | undefined {
  const fields: Field[] = [];
  let at = 0;
  const readVarint = (): number | undefined => {
    let value = 0;
    for (let factor = 1; factor < MAX_SAFE_SHIFT; factor *= 128) {
      const byte = bytes[at++];
      if (byte === undefined) return undefined;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    return undefined;
  };
  while (at < bytes.length) {
    const start = at;
    const tag = readVarint();
    if (tag === undefined) return undefined;
    const wireType = tag % 8;
    let value = bytes.subarray(0, 0);
    if (wireType === 0) {
      while ((bytes[at] ?? 0) >= 0x80) at++;
      at++;
    } else if (wireType === 1) at += 8;
    else if (wireType === 5) at += 4;
    else if (wireType === LENGTH_DELIMITED) {
      const length = readVarint();
      if (length === undefined) return undefined;
      value = bytes.subarray(at, at + length);
      at += length;
    } else return undefined;
    if (at > bytes.length) return undefined;
    fields.push({ number: Math.floor(tag / 8), wireType, whole: bytes.subarray(start, at), value });
  }
  return fields;
}

/** A number as varint. @param value a safe integer of at least 0 */
export function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}

/** A number as a field. */
export function numberField(number: number, value: number): Buffer {
  return Buffer.concat([varint(number * 8), varint(value)]);
}

/** A message as a field of another one, from its parts. */
export function messageField(number: number, parts: readonly Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([varint(number * 8 + LENGTH_DELIMITED), varint(length), ...parts]);
}
