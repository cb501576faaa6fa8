// FNV-1a with 64 bits (Fowler, Noll, Vo), the hash of the API server's shard selectors. Pure. In two halves of 32 bits, since
// a bigint multiplication for each byte would make planning many times as slow. Called by shard-ranges.ts.

const OFFSET_HIGH = 0xcbf29ce4;
const OFFSET_LOW = 0x84222325;
/** The prime is 2^40 + this. */
const PRIME_LOW = 0x1b3;
const TWO_32 = 2 ** 32;

/** The hash of the text's UTF-8 bytes, in [0, 2^64). */
export function fnv1a64(text: string): bigint {
  const bytes = asByteString(text);
  let high = OFFSET_HIGH;
  let low = OFFSET_LOW;
  for (let index = 0; index < bytes.length; index++) {
    low = (low ^ bytes.charCodeAt(index)) >>> 0;
    // hash * prime = (hash << 40) + hash * PRIME_LOW, modulo 2^64; every product stays below 2^53.
    const product = low * PRIME_LOW;
    high = (high * PRIME_LOW + Math.floor(product / TWO_32) + ((low << 8) >>> 0)) >>> 0;
    low = product >>> 0;
  }
  return (BigInt(high) << 32n) | BigInt(low);
}

// A string of one character a byte. Names of namespaces are ASCII and are that already.
function asByteString(text: string): string {
  return /^[ -~]*$/.test(text) ? text : String.fromCharCode(...new TextEncoder().encode(text));
}
