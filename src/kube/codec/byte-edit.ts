// Edits on bytes that leave every other byte as it is. Invariant: an edit names its place in the original, so that edits found
// apart can be made at once and each byte is copied once. Used where names are replaced and parts are left out.

/** What stands from `start` to `end` is replaced, or left out. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly replacement?: Uint8Array;
}

/** The bytes with the edits made; they must be in order and apart. The same array if there are none. */
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

/** How many bytes shorter the edits make the text. */
export function savedBy(edits: readonly Edit[]): number {
  return edits.reduce((saved, { start, end, replacement }) => saved + end - start - (replacement?.length ?? 0), 0);
}
