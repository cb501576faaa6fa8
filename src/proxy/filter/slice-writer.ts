// Joins neighbouring slices of the same memory into one write, so that a chunk with a hundred kept events
// costs one write. Invariant: it keeps the order and copies nothing.
import type { ByteSink } from "../http/byte-stream.ts";

export class SliceWriter {
  readonly #sink: ByteSink;
  /** The first slice of the run, and the bytes of all its slices. */
  #first: Uint8Array | undefined;
  #length = 0;
  written = 0;

  constructor(sink: ByteSink) {
    this.#sink = sink;
  }

  /** Writes a slice, at the latest with the next `flush`. False if the sink is full. */
  add(slice: Uint8Array): boolean {
    const first = this.#first;
    if (first !== undefined && first.buffer === slice.buffer && first.byteOffset + this.#length === slice.byteOffset) {
      this.#length += slice.length;
      return true;
    }
    const wanted = this.flush();
    this.#first = slice;
    this.#length = slice.length;
    return wanted;
  }

  flush(): boolean {
    const first = this.#first;
    if (first === undefined) return true;
    const length = this.#length;
    this.#first = undefined;
    this.written += length;
    return this.#sink.write(length === first.length ? first : Buffer.from(first.buffer, first.byteOffset, length));
  }
}
