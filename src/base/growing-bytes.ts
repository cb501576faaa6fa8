// The bytes of a body while it arrives, in one buffer that grows. Invariant: it keeps none of the chunks,
// since a chunk of one byte may take hundreds; so the memory of a body is the buffer's capacity.

export interface GrowingBytes {
  /** What has arrived so far. Not to be kept: the next `push` may take its memory. */
  readonly bytes: Buffer;
  /** How many bytes of memory adding a chunk of this length takes. */
  growthBy(length: number): number;
  push(chunk: Uint8Array): void;
}

/** Of a body that comes byte by byte. */
const SMALLEST = 4_096;
/** The buffers that are copied have a third of the body together. Unwritten memory is not resident. */
const GROWTH = 4;

/** @param maxBytes of the body: its declared length, or a bound. The caller refuses what is longer. */
export function createGrowingBytes(maxBytes: number): GrowingBytes {
  let buffer = Buffer.allocUnsafeSlow(0);
  let length = 0;
  const capacityFor = (needed: number) => {
    if (needed <= buffer.length) return buffer.length;
    return Math.max(needed, Math.min(maxBytes, Math.max(SMALLEST, buffer.length * GROWTH)));
  };
  return {
    get bytes() {
      return buffer.subarray(0, length);
    },
    growthBy: (more) => capacityFor(length + more) - buffer.length,
    push(chunk) {
      const capacity = capacityFor(length + chunk.length);
      if (capacity > buffer.length) {
        const grown = Buffer.allocUnsafeSlow(capacity); // not from the pool, which would keep its 8 KiB
        buffer.copy(grown, 0, 0, length);
        buffer.buffer.transfer(0); // frees it now: the collector would wait for 32 MB of such buffers
        buffer = grown;
      }
      buffer.set(chunk, length);
      length += chunk.length;
    },
  };
}
