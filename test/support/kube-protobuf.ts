// Kubernetes' protobuf bodies for tests: a tiny encoder and a reference decoder, written apart from src so that a mistake
// there is not made here again. The decoder knows nothing of filler: it skips unknown fields as any decoder does.

/** Something to encode: a string or bytes as a BYTES field, a number as a varint, an array as a nested message. */
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

/** A watch event with its length. */
export function watchFrame(type: string, body: Uint8Array): Buffer {
  const event = message([
    [1, type],
    [2, [[1, body]]],
  ]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(event.length);
  return Buffer.concat([length, event]);
}

export interface Decoded {
  readonly number: number;
  readonly value: number | Buffer;
}

/** The fields of a message. Throws RangeError where it is malformed. */
export function decode(bytes: Buffer): Decoded[] {
  const fields: Decoded[] = [];
  let at = 0;
  const readVarint = () => {
    let value = 0;
    for (let shift = 0; ; shift++) {
      const byte = bytes.readUInt8(at++);
      value += (byte % 128) * 128 ** shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = readVarint();
    const number = Math.floor(tag / 8);
    if (tag % 8 === 0) fields.push({ number, value: readVarint() });
    else if (tag % 8 === 2) {
      const length = readVarint();
      if (at + length > bytes.length) throw new RangeError("field leaves its message");
      fields.push({ number, value: bytes.subarray(at, at + length) });
      at += length;
    } else if (tag % 8 === 1 || tag % 8 === 5) at += tag % 8 === 1 ? 8 : 4;
    else throw new RangeError(`wire type ${tag % 8}`);
  }
  return fields;
}

/** The last BYTES value of a field, as decoders take it. */
export function bytesOf(fields: readonly Decoded[], number: number): Buffer | undefined {
  const value = fields.findLast((field) => field.number === number)?.value;
  return value instanceof Buffer ? value : undefined;
}

export interface DecodedList {
  readonly kind: string | undefined;
  readonly meta: Decoded[];
  /** The items as encoded. */
  readonly items: Buffer[];
  /** How many fields of the envelope there are behind the list. */
  readonly trailing: number;
}

/** Decodes an enveloped list as a client does: fields 1 and 2 of the list, all others skipped. */
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
