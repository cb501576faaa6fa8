// Splits bytes and runs byte filters over the parts, for tests of stream code.
import type { ByteFilter } from "../../src/kube/codec/codec.ts";

/** The bytes, split at these positions in any order. */
export function cutAt(bytes: Uint8Array, positions: readonly number[]): Uint8Array[] {
  const sorted = [...new Set(positions.map((position) => position % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...sorted].map((start, index) => bytes.slice(start, sorted[index] ?? bytes.length));
}

/** Everything that the filter emits for these chunks. */
export function runFilter(filter: ByteFilter, chunks: readonly Uint8Array[]): Buffer {
  const slices: Uint8Array[] = [];
  const emit = (slice: Uint8Array): void => {
    slices.push(slice);
  };
  for (const chunk of chunks) filter.push(chunk, emit);
  filter.end(emit);
  return Buffer.concat(slices);
}

/** The bytes that the filter emits for these chunks, and the error that it throws, if any. */
export function tryFilter(
  filter: ByteFilter,
  chunks: readonly Uint8Array[],
): { readonly emitted: Buffer; readonly error: unknown } {
  const slices: Uint8Array[] = [];
  const emit = (slice: Uint8Array): void => {
    slices.push(slice);
  };
  let error: unknown;
  try {
    for (const chunk of chunks) filter.push(chunk, emit);
    filter.end(emit);
  } catch (thrown) {
    error = thrown;
  }
  return { emitted: Buffer.concat(slices), error };
}
