// A contiguous view on the part of a stream that is not dealt with yet. Invariant: bytes once handed out are never
// overwritten, and growing costs O(1) a byte, so that an item over a thousand chunks is copied about twice. Used by the
// list filters and the frame splitter.
import { asBuffer } from "./types.ts";

export class ByteWindow {
  /** Valid up to `end`; behind it there may be spare room with stale bytes. */
  bytes: Buffer = Buffer.alloc(0);
  end = 0;
  #owned = false;

  /**
   * Puts a chunk behind the bytes from `from` on; those before `from` are gone.
   * @returns how far the positions moved down: the caller subtracts it from those that it holds
   */
  append(chunk: Uint8Array, from: number): number {
    const rest = this.end - from;
    if (rest === 0) {
      this.bytes = asBuffer(chunk);
      this.end = chunk.length;
      this.#owned = false;
      return from;
    }
    if (this.#owned && this.end + chunk.length <= this.bytes.length) {
      this.bytes.set(chunk, this.end);
      this.end += chunk.length;
      return 0;
    }
    const grown = Buffer.allocUnsafe(Math.max(rest + chunk.length, rest * 2));
    grown.set(this.bytes.subarray(from, this.end));
    grown.set(chunk, rest);
    this.bytes = grown;
    this.end = rest + chunk.length;
    this.#owned = true;
    return from;
  }

  /** Forgets everything, so that an idle stream holds no chunk. */
  clear(): void {
    this.bytes = Buffer.alloc(0);
    this.end = 0;
    this.#owned = false;
  }
}
