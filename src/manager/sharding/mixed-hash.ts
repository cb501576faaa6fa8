// A hash of names for placement: FNV-1a, then the finalizer of MurmurHash3, since FNV-1a alone is badly
// skewed for short names that differ only in their last letters. Pure. Invariant: the values never change,
// since stored placements depend on them.
const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;
const encoder = new TextEncoder();

/** From 0 to 2^32 - 1. Each use has a salt of its own, so that its hashes are independent. */
export function mixedHash(name: string, salt: string): number {
  let hash = fnv(fnv(FNV_OFFSET, salt), name);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Continues a hash with the UTF-8 bytes of a text. ASCII is not encoded first: there may be hundreds of thousands of names. */
function fnv(start: number, text: string): number {
  let hash = start;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code > 0x7f) return fnvOfBytes(start, encoder.encode(text));
    hash = Math.imul(hash ^ code, FNV_PRIME);
  }
  return hash;
}

function fnvOfBytes(start: number, bytes: Uint8Array): number {
  return bytes.reduce((hash, byte) => Math.imul(hash ^ byte, FNV_PRIME), start);
}
