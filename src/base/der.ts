// Writes and reads ASN.1 DER, as far as X.509 certificates need it. Every certificate library uses more
// memory than the services have for it.

/** Tag bytes of the universal types in use. */
export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

export function tlv(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag, ...lengthBytes(body.length)]), body]);
}

export function sequence(...items: readonly Uint8Array[]): Buffer {
  return tlv(TAG.sequence, ...items);
}

/** A non-negative integer from its big-endian bytes. */
export function integer(bytes: Uint8Array): Buffer {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start++;
  const trimmed = bytes.subarray(start);
  const negative = ((trimmed[0] ?? 0) & 0x80) !== 0;
  return tlv(TAG.integer, Buffer.from(negative ? [0] : []), trimmed);
}

export function boolean(value: boolean): Buffer {
  return tlv(TAG.boolean, Buffer.from([value ? 0xff : 0]));
}

export function octetString(bytes: Uint8Array): Buffer {
  return tlv(TAG.octetString, bytes);
}

/** @param unusedBits of the last byte */
export function bitString(bytes: Uint8Array, unusedBits = 0): Buffer {
  return tlv(TAG.bitString, Buffer.from([unusedBits]), bytes);
}

/** An object identifier from its dotted form. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return tlv(TAG.oid, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** A point in time: UTCTime until 2049, then GeneralizedTime (RFC 5280 4.1.2.5). */
export function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/\.\d+/, "").replace(/[-:T]/g, "");
  return new Date(ms).getUTCFullYear() < 2050
    ? tlv(TAG.utcTime, Buffer.from(digits.slice(2), "latin1"))
    : tlv(TAG.generalizedTime, Buffer.from(digits, "latin1"));
}

export interface DerElement {
  readonly tag: number;
  /** Tag, length and contents. */
  readonly bytes: Buffer;
  readonly contents: Buffer;
}

/** The elements of `bytes`, one after the other. A length beyond the end is cut. */
export function readElements(bytes: Buffer): DerElement[] {
  const elements: DerElement[] = [];
  for (let at = 0; at + 2 <= bytes.length; ) {
    const short = bytes[at + 1] ?? 0;
    const lengthSize = short < 0x80 ? 0 : short & 0x7f;
    const length = lengthSize === 0 ? short : bytes.readUIntBE(at + 2, lengthSize);
    const start = at + 2 + lengthSize;
    elements.push({
      tag: bytes[at] ?? 0,
      bytes: bytes.subarray(at, start + length),
      contents: bytes.subarray(start, start + length),
    });
    at = start + length;
  }
  return elements;
}

function lengthBytes(length: number): number[] {
  if (length < 0x80) return [length];
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return [0x80 | bytes.length, ...bytes];
}

function base128(value: number): number[] {
  const bytes = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) bytes.unshift(0x80 | (rest % 128));
  return bytes;
}
