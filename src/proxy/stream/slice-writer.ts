// Joins slices that lie behind each other in the same memory into one write, so that a chunk of a hundred kept events costs
// one write and not a hundred. Invariant: the order is kept and nothing is copied. Called by the watch stream.
import type { ByteSink } from "../pipeline/byte-stream.ts";

export class SliceWriter {
  readonly #sink: ByteSink;
  #run: Uint8Array | undefined;
  /** Bytes handed to the sink. */
  written = 0;

  constructor(sink: ByteSink) {
    this.#sink = sink;
  }

  /** Takes a slice; it is in the sink's hands after `flush` at the latest. False if the sink is full. */
  add(slice: Uint8Array): boolean {
    const run = this.#run;
    if (run !== undefined && run.buffer === slice.buffer && run.byteOffset + run.length === slice.byteOffset) {
      this.#run = Buffer.from(run.buffer, run.byteOffset, run.length + slice.length);
      return true;
    }
    const wanted = this.flush();
    this.#run = slice;
    return wanted;
  }

  flush(): boolean {
    const run = this.#run;
    if (run === undefined) return true;
    this.#run = undefined;
    this.written += run.length;
    return this.#sink.write(run);
  }
}
