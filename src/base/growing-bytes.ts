// The bytes of a body while it arrives, in one buffer that grows. Invariant: it keeps no chunks, since a
// chunk of one byte may take hundreds of bytes. So the memory of a body is the buffer's capacity.

export type GrowingBytes = ReturnType<typeof createGrowingBytes>;

const MIN_CAPACITY = 4_096;
/**
 * With 4, all copies together move at most 4/3 of the body (1 + 1/4 + 1/16 + ...); with 2, twice the body.
 * The part of a large buffer that is not written yet takes no physical memory.
 */
const GROWTH = 4;

/** @param maxBytes the body's declared length, or a bound of it. The caller refuses a longer body. */
export function createGrowingBytes(maxBytes: number) {
  let buffer = Buffer.allocUnsafeSlow(0);
  let length = 0;
  const capacityFor = (needed: number) => {
    if (needed <= buffer.length) return buffer.length;
    return Math.max(needed, Math.min(maxBytes, Math.max(MIN_CAPACITY, buffer.length * GROWTH)));
  };
  return {
    /** What has arrived. Do not keep it: the next `push` may free its memory. */
    get bytes(): Buffer {
      return buffer.subarray(0, length);
    },
    /** The bytes of memory that a chunk of this length adds. */
    growthBy: (more: number) => capacityFor(length + more) - buffer.length,
    push(chunk: Uint8Array): void {
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
