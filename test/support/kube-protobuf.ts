// Kubernetes' protobuf bodies for tests: an encoder and a reference decoder that share no code with src. Like any decoder, the decoder
// skips unknown fields, filler included.

/** A value to encode: a string or bytes as a BYTES field, a number as a varint, an array as a nested message. */
export type Value = string | number | Uint8Array | Field[];
export type Field = readonly [number: number, value: Value];

export function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 127) {
    bytes.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  return [...bytes, rest];
}

export function message(fields: readonly Field[]): Buffer {
  return Buffer.concat(
    fields.map(([number, value]) => {
      if (typeof value === "number") return Buffer.from([...varint(number << 3), ...varint(value)]);
      const bytes = typeof value === "string" ? Buffer.from(value) : Array.isArray(value) ? message(value) : value;
      return Buffer.concat([Buffer.from([...varint((number << 3) | 2), ...varint(bytes.length)]), bytes]);
    }),
  );
}

/** `k8s\0` and runtime.Unknown, with the empty fields 3 and 4 that Go writes. */
export function envelope(apiVersion: string, kind: string, raw: Uint8Array | Field[]): Buffer {
  return Buffer.concat([
    Buffer.from("k8s\0"),
    message([
      [
        1,
        [
          [1, apiVersion],
          [2, kind],
        ],
      ],
      [2, raw],
      [3, ""],
      [4, ""],
    ]),
  ]);
}

/** A watch event, preceded by its length. */
export function watchFrame(type: string, body: Uint8Array): Buffer {
  const event = message([
    [1, type],
    [2, [[1, body]]],
  ]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(event.length);
  return Buffer.concat([length, event]);
}

/** A field in any form that a client may send, including forms that the encoder never writes. */
export interface WireField {
  readonly number: number;
  /** 0 varint, 1 eight bytes, 2 bytes, 3 a group, 5 four bytes; 4, 6 and 7 are malformed. */
  readonly wireType: number;
  readonly value: number | Uint8Array | readonly WireField[];
  /** The number of unnecessary bytes in each varint: in the tags, and in the length of type 2 or the value of type 0. */
  readonly padding?: number;
}

function paddedVarint(value: number, padding: number): Buffer {
  const bytes = varint(value);
  if (padding === 0) return Buffer.from(bytes);
  return Buffer.from([...bytes.slice(0, -1), (bytes.at(-1) ?? 0) | 0x80, ...Array.from({ length: padding - 1 }, () => 0x80), 0]);
}

/** Encodes fields of any wire type. */
export function wireMessage(fields: readonly WireField[]): Buffer {
  return Buffer.concat(
    fields.flatMap(({ number, wireType, value, padding = 0 }) => {
      const tag = (type: number) => paddedVarint(number * 8 + type, padding);
      const bytes =
        typeof value === "number"
          ? Buffer.from(varint(value))
          : Array.isArray(value)
            ? wireMessage(value)
            : (value as Uint8Array);
      if (wireType === 2) return [tag(2), paddedVarint(bytes.length, padding), bytes];
      if (wireType === 3) return [tag(3), bytes, tag(4)];
      if (wireType === 0) return [tag(0), paddedVarint(typeof value === "number" ? value : 0, padding)];
      return [tag(wireType), Buffer.alloc(wireType === 1 ? 8 : wireType === 5 ? 4 : 0)];
    }),
  );
}

export interface Decoded {
  readonly number: number;
  /** Undefined for a group and for a field of fixed length. */
  readonly value: number | Buffer | undefined;
  readonly isGroup: boolean;
}

/** The fields of a message, with a group as one field. Throws RangeError if it is malformed. */
export function decode(bytes: Buffer): Decoded[] {
  const fields: Decoded[] = [];
  const groups: number[] = [];
  let at = 0;
  const readVarint = () => {
    let value = 0;
    for (let shift = 0; shift < 10; shift++) {
      const byte = bytes.readUInt8(at++);
      value += (byte % 128) * 128 ** shift;
      if (byte < 128) return value;
    }
    throw new RangeError("a varint is over ten bytes");
  };
  const readValue = (wireType: number): Decoded["value"] => {
    if (wireType === 0) return readVarint();
    const length = wireType === 2 ? readVarint() : wireType === 1 ? 8 : 4;
    if (wireType > 5 || at + length > bytes.length)
      throw new RangeError("a wire type is unknown, or a field is longer than its message");
    at += length;
    return wireType === 2 ? bytes.subarray(at - length, at) : undefined;
  };
  while (at < bytes.length) {
    const tag = readVarint();
    const [number, wireType] = [Math.floor(tag / 8), tag % 8];
    if (number === 0) throw new RangeError("field number 0");
    if (wireType === 4 && groups.pop() !== number) throw new RangeError("a group ends without a start");
    const value = wireType === 3 || wireType === 4 ? undefined : readValue(wireType);
    if (groups.length === 0 && wireType !== 4) fields.push({ number, value, isGroup: wireType === 3 });
    if (wireType === 3) groups.push(number);
  }
  if (groups.length > 0) throw new RangeError("a group has no end");
  return fields;
}

/** The bytes of the last occurrence of a field, which decoders use; undefined if there is none or if it has no bytes. */
export function bytesOf(fields: readonly Decoded[], number: number): Buffer | undefined {
  const value = fields.findLast((field) => field.number === number)?.value;
  return value instanceof Buffer ? value : undefined;
}

export interface DecodedList {
  readonly kind: string | undefined;
  readonly meta: Decoded[];
  /** The items as encoded. */
  readonly items: Buffer[];
  /** The number of fields that follow the list in the envelope. */
  readonly trailing: number;
}

/** Decodes an enveloped list like a client, which reads only the fields 1 and 2 of the list. */
export function decodeList(body: Buffer): DecodedList {
  if (body.toString("latin1", 0, 4) !== "k8s\0") throw new RangeError("no prefix");
  const unknown = decode(body.subarray(4));
  const list = decode(bytesOf(unknown, 2) ?? Buffer.alloc(0));
  const type = decode(bytesOf(unknown, 1) ?? Buffer.alloc(0));
  return {
    kind: bytesOf(type, 2)?.toString(),
    meta: decode(bytesOf(list, 1) ?? Buffer.alloc(0)),
    items: list.flatMap(({ number, value }) => (number === 2 && value instanceof Buffer ? [value] : [])),
    trailing: unknown.filter(({ number }) => number > 2).length,
  };
}
