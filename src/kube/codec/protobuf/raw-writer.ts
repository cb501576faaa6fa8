// Writes the filtered list message into its envelope.
//
// The envelope's length comes before the message, but the size of the kept part is known only at the end. So
// kept bytes are held, up to a bound. If the message ends within the bound, its exact length is written. If
// not, the original length is promised, and filler replaces what is dropped from then on: an unknown field of
// zeros of exactly the same size, which every protobuf decoder skips.
import type { Emit } from "../base/types.ts";
import { BYTES, encodeVarint, varintLength } from "./wire.ts";

/** A field number that no list message of Kubernetes has; its tag is one byte. */
const FILLER_FIELD = 15;

const FILLER_TAG = FILLER_FIELD * 8 + BYTES;
const RAW_TAG = 2 * 8 + BYTES;
const ZEROS = Buffer.alloc(64 * 1024); // shared by all fillers, never written
const BLOCK_BYTES = 64 * 1024;

export class ProtobufRawWriter {
  readonly #maxHeldBytes: number;
  #header: Buffer[] = [];
  #blocks: Buffer[] = [];
  #used = 0;
  #held = 0;
  #promised = false;
  /** Dropped bytes that filler must still replace. Neighbours share one field. */
  #owed = 0;

  constructor(maxHeldBytes: number) {
    this.#maxHeldBytes = maxHeldBytes;
  }

  /** Adds bytes that come before the message. */
  header(bytes: Uint8Array): void {
    this.#header.push(Buffer.from(bytes));
  }

  /**
   * Writes kept bytes of the message.
   * @param remaining how many bytes of the original message are not processed yet
   */
  keep(bytes: Uint8Array, remaining: number, emit: Emit): void {
    if (this.#promised) {
      this.#fill(emit);
      emit(bytes);
      return;
    }
    this.#hold(bytes);
    if (this.#held > this.#maxHeldBytes) {
      this.#emitHeld(this.#held + remaining, emit);
      this.#promised = true;
    }
  }

  /** Replaces whole fields of `size` bytes that are dropped. `size` is at least 2, as no field is smaller. */
  drop(size: number, emit: Emit): void {
    if (!this.#promised) return;
    this.#owed += size;
    if (this.#owed >= ZEROS.length) this.#fill(emit);
  }

  /** Ends the message. */
  close(emit: Emit): void {
    if (!this.#promised) this.#emitHeld(this.#held, emit);
    this.#fill(emit);
  }

  #fill(emit: Emit): void {
    if (this.#owed > 0) emitFiller(this.#owed, emit);
    this.#owed = 0;
  }

  // The bytes are copied, since a slice would keep its whole chunk in memory.
  #hold(bytes: Uint8Array): void {
    this.#held += bytes.length;
    for (let from = 0; from < bytes.length; ) {
      const block = this.#blocks.at(-1);
      if (block === undefined || this.#used === block.length) {
        this.#blocks.push(Buffer.allocUnsafeSlow(BLOCK_BYTES));
        this.#used = 0;
        continue;
      }
      const part = bytes.subarray(from, from + block.length - this.#used);
      block.set(part, this.#used);
      this.#used += part.length;
      from += part.length;
    }
  }

  #emitHeld(rawLength: number, emit: Emit): void {
    emit(Buffer.concat([...this.#header, Buffer.from([RAW_TAG]), encodeVarint(rawLength)]));
    const last = this.#blocks.pop();
    for (const block of this.#blocks) emit(block);
    if (last !== undefined && this.#used > 0) emit(last.subarray(0, this.#used));
    this.#header = [];
    this.#blocks = [];
  }
}

// A field of n zeros takes 1 + varintLength(n) + n bytes. Some sizes cannot be reached so (130, for one):
// there an empty field comes first.
function emitFiller(size: number, emit: Emit): void {
  const length = fillerLength(size) ?? fillerLength(size - 2);
  if (length === undefined) throw new RangeError(`no filler has ${size} bytes`);
  const gap = fillerLength(size) === undefined ? [FILLER_TAG, 0] : [];
  emit(Buffer.from([...gap, FILLER_TAG, ...encodeVarint(length)]));
  for (let rest = length; rest > 0; rest -= ZEROS.length) emit(ZEROS.subarray(0, Math.min(rest, ZEROS.length)));
}

function fillerLength(size: number): number | undefined {
  for (let width = 1; width <= 8; width++) {
    const length = size - 1 - width;
    if (length >= 0 && varintLength(length) === width) return length;
  }
  return undefined;
}
