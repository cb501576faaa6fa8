// A contiguous view on the part of a stream that is not dealt with yet. Invariants: bytes once handed out are never overwritten;
// only what straddles two chunks is copied, and growing costs O(1) a byte, so an item over a thousand chunks is copied about
// twice and one inside a chunk never. Used by the list filters and the frame splitters.
import { asBuffer } from "./types.ts";

const NO_BYTES = Buffer.alloc(0);
const MIN_JOIN_BYTES = 1024;

export class ByteWindow {
  /** Valid up to `end`; behind it there may be spare room with stale bytes. */
  bytes: Buffer = NO_BYTES;
  end = 0;
  #owned = false;
  /** The last chunk, of which only a part may be in the window yet, and how much of it is. */
  #chunk: Buffer = NO_BYTES;
  #taken = 0;

  /** Takes the next chunk. It is put into the window by `extend`, which must be called until there is no more of it. */
  append(chunk: Uint8Array): void {
    this.#chunk = asBuffer(chunk);
    this.#taken = 0;
  }

  /**
   * Takes more of the chunk into the window; what lies before `from` is gone. `from` may lie behind the end: then bytes that
   * have not come yet are not needed either.
   * @returns how far the positions moved down: the caller subtracts it from those that it holds; undefined if there is no more
   */
  extend(from: number): number | undefined {
    const chunk = this.#chunk;
    const taken = this.#taken;
    if (taken === chunk.length) return undefined;
    const rest = this.end - from;
    // All that is still needed lies in the chunk itself.
    if (rest <= taken) {
      this.#taken = chunk.length;
      this.bytes = chunk;
      this.end = chunk.length;
      this.#owned = false;
      return from - (taken - rest);
    }
    const part = chunk.subarray(taken, taken + Math.max(rest, MIN_JOIN_BYTES));
    this.#taken += part.length;
    if (this.#owned && this.end + part.length <= this.bytes.length) {
      this.bytes.set(part, this.end);
      this.end += part.length;
      return 0;
    }
    const grown = Buffer.allocUnsafe(Math.max(rest + part.length, rest * 2));
    this.bytes.copy(grown, 0, from, this.end);
    grown.set(part, rest);
    this.bytes = grown;
    this.end = rest + part.length;
    this.#owned = true;
    return from;
  }

  /** Forgets everything, so that an idle stream holds no chunk. */
  clear(): void {
    this.bytes = NO_BYTES;
    this.end = 0;
    this.#owned = false;
    this.#chunk = NO_BYTES;
    this.#taken = 0;
  }
}
