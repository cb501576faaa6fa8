// Compares and edits bytes. An edit gives its place in the original bytes, so edits from different code can
// be applied together, and each byte is copied once.

/** The same memory as a Buffer. Its decoders are fast, and one class keeps the hot loops monomorphic. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** True if these bytes are the characters of `text`, all of them ASCII. */
export function equalsAscii(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false;
  for (let index = 0; index < text.length; index++) {
    const byte = bytes[start + index] as number;
    if (byte !== text.charCodeAt(index) || byte >= 0x80) return false;
  }
  return true;
}

/** Replaces the bytes from `start` to `end`, or removes them if there is no replacement. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly replacement?: Uint8Array;
}

/** The same array if there are no edits. The edits must be in order and must not overlap. */
export function applyEdits(bytes: Uint8Array, edits: readonly Edit[]): Uint8Array {
  if (edits.length === 0) return bytes;
  const parts: Uint8Array[] = [];
  let from = 0;
  for (const { start, end, replacement } of edits) {
    parts.push(bytes.subarray(from, start));
    if (replacement !== undefined) parts.push(replacement);
    from = end;
  }
  parts.push(bytes.subarray(from));
  return Buffer.concat(parts);
}

/** By how many bytes the edits shorten the text. */
export function savedBytes(edits: readonly Edit[]): number {
  return edits.reduce((saved, { start, end, replacement }) => saved + end - start - (replacement?.length ?? 0), 0);
}
