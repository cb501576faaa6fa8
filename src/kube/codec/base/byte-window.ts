// A contiguous view of the part of a stream that is not processed yet. Invariants: bytes that were handed out
// are never overwritten; an item that spans a thousand chunks is copied about twice.
import { asBuffer } from "./bytes.ts";

const NO_BYTES = Buffer.alloc(0);
const MIN_JOIN_BYTES = 1024;

export class ByteWindow {
  /** Valid up to `end`. The bytes after `end` are spare room. */
  bytes: Buffer = NO_BYTES;
  end = 0;
  #isOwnCopy = false;
  /** The last chunk. Only a part of it may be in the window yet. */
  #chunk: Buffer = NO_BYTES;
  #takenOfChunk = 0;

  get heldBytes(): number {
    return this.bytes.length;
  }

  /** `extend` moves the chunk into the window and must be called until it returns undefined. */
  append(chunk: Uint8Array): void {
    this.#chunk = asBuffer(chunk);
    this.#takenOfChunk = 0;
  }

  /**
   * Moves more of the chunk into the window and forgets the bytes before `from`. A `from` after the end also
   * skips bytes that have not arrived yet.
   * @returns what the caller subtracts from its positions; undefined at the end of the chunk
   */
  extend(from: number): number | undefined {
    const chunk = this.#chunk;
    const taken = this.#takenOfChunk;
    if (taken === chunk.length) return undefined;
    const rest = this.end - from;
    // The chunk itself holds everything that is still needed.
    if (rest <= taken) {
      this.#takenOfChunk = chunk.length;
      this.bytes = chunk;
      this.end = chunk.length;
      this.#isOwnCopy = false;
      return from - (taken - rest);
    }
    const part = chunk.subarray(taken, taken + Math.max(rest, MIN_JOIN_BYTES));
    this.#takenOfChunk += part.length;
    if (this.#isOwnCopy && this.end + part.length <= this.bytes.length) {
      this.bytes.set(part, this.end);
      this.end += part.length;
      return 0;
    }
    const grown = Buffer.allocUnsafe(Math.max(rest + part.length, rest * 2));
    this.bytes.copy(grown, 0, from, this.end);
    grown.set(part, rest);
    this.bytes = grown;
    this.end = rest + part.length;
    this.#isOwnCopy = true;
    return from;
  }

  /** Forgets everything, so that an idle stream holds no chunk. */
  clear(): void {
    this.bytes = NO_BYTES;
    this.end = 0;
    this.#isOwnCopy = false;
    this.#chunk = NO_BYTES;
    this.#takenOfChunk = 0;
  }
}
