// The bytes of a protobuf list that go to the client. The list's length comes before its kept bytes, so those
// are held. If they exceed a bound, the original length is sent, and filler replaces what is dropped later:
// an unknown field of zeros of exactly the dropped size, which every protobuf decoder skips.
import { ByteWindow } from "../base/byte-window.ts";
import { codecError, type Emit } from "../base/types.ts";
import { BYTES, encodeBytes, encodeVarint, varintLength } from "./wire.ts";

/** Field 15, which no list message of Kubernetes has; its tag is one byte. */
const FILLER_TAG = 15 * 8 + BYTES;
const RAW_TAG = 2 * 8 + BYTES;
const ZEROS = Buffer.alloc(64 * 1024); // shared by all fillers, never written
const BLOCK_BYTES = 64 * 1024;

export class ProtobufListOutput {
  /** Everything before it is processed. It may be after the window's end, for dropped bytes to come. */
  position = 0;
  /** Bytes of the list's message after `position`. */
  rawLeft = 0;
  readonly #window = new ByteWindow();
  /** The bytes from `#mark` to `position` are kept and not written yet. */
  #mark = 0;

  readonly #maxHeldBytes: number;
  #header: Buffer[] = [];
  #blocks: Buffer[] = [];
  #usedOfBlock = 0;
  #heldBytes = 0;
  #isLengthSent = false;
  /** Dropped bytes that filler must still replace. One field replaces adjacent dropped fields. */
  #fillerBytes = 0;

  constructor(maxHeldBytes: number) {
    this.#maxHeldBytes = maxHeldBytes;
  }

  get bytes(): Buffer {
    return this.#window.bytes;
  }

  get end(): number {
    return this.#window.end;
  }

  get heldBytes(): number {
    return this.#window.heldBytes + this.#blocks.length * BLOCK_BYTES;
  }

  append(chunk: Uint8Array): void {
    this.#window.append(chunk);
  }

  /** Moves more of the chunk into the window. False at the end of the chunk. */
  extend(): boolean {
    const shift = this.#window.extend(this.position);
    if (shift === undefined) return false;
    this.position -= shift;
    this.#mark = this.position;
    return true;
  }

  /** Holds a copy of the next bytes, which come before the message. */
  holdHeader(size: number): void {
    this.#header.push(Buffer.from(this.bytes.subarray(this.position, this.position + size)));
    this.advance(size);
  }

  /** Skips bytes. */
  advance(size: number): void {
    this.position += size;
    this.#mark = this.position;
  }

  /** Keeps the next bytes of the message. */
  keep(size: number): void {
    this.position += size;
    this.rawLeft -= size;
  }

  /** Drops the next bytes. They are whole fields, of which a part may not have arrived yet. */
  leaveOut(size: number, emit: Emit): void {
    this.flush(emit);
    this.#drop(size, emit);
    this.advance(size);
    this.rawLeft -= size;
  }

  /** Writes the next field with another value. */
  replace(number: number, size: number, value: Uint8Array, emit: Emit): void {
    this.flush(emit);
    const written = encodeBytes(number, value);
    const saved = size - written.length;
    // The length of the message may be sent already, and no filler has one byte.
    if (saved < 0 || saved === 1)
      throw codecError("CODEC_TOO_LARGE", "filtering a protobuf list: a rewritten field does not fit");
    this.#write(written, this.rawLeft - written.length, emit);
    if (saved > 0) this.#drop(saved, emit);
    this.advance(size);
    this.rawLeft -= size;
  }

  flush(emit: Emit): void {
    if (this.position > this.#mark) this.#write(this.bytes.subarray(this.#mark, this.position), this.rawLeft, emit);
    this.#mark = this.position;
  }

  /** Ends the message. */
  close(emit: Emit): void {
    this.flush(emit);
    if (!this.#isLengthSent) this.#emitHeld(this.#heldBytes, emit);
    this.#fill(emit);
  }

  // `remaining` is how many bytes of the original message are not processed yet.
  #write(bytes: Uint8Array, remaining: number, emit: Emit): void {
    if (this.#isLengthSent) {
      this.#fill(emit);
      emit(bytes);
      return;
    }
    this.#hold(bytes);
    if (this.#heldBytes > this.#maxHeldBytes) {
      this.#emitHeld(this.#heldBytes + remaining, emit);
      this.#isLengthSent = true;
    }
  }

  // Filler replaces whole fields. `size` is at least 2, as no field is smaller.
  #drop(size: number, emit: Emit): void {
    if (!this.#isLengthSent) return;
    this.#fillerBytes += size;
    if (this.#fillerBytes >= ZEROS.length) this.#fill(emit);
  }

  #fill(emit: Emit): void {
    if (this.#fillerBytes > 0) emitFiller(this.#fillerBytes, emit);
    this.#fillerBytes = 0;
  }

  // The bytes are copied, since a slice would keep its whole chunk in memory.
  #hold(bytes: Uint8Array): void {
    this.#heldBytes += bytes.length;
    for (let from = 0; from < bytes.length; ) {
      const block = this.#blocks.at(-1);
      if (block === undefined || this.#usedOfBlock === block.length) {
        this.#blocks.push(Buffer.allocUnsafeSlow(BLOCK_BYTES));
        this.#usedOfBlock = 0;
        continue;
      }
      const part = bytes.subarray(from, from + block.length - this.#usedOfBlock);
      block.set(part, this.#usedOfBlock);
      this.#usedOfBlock += part.length;
      from += part.length;
    }
  }

  #emitHeld(rawLength: number, emit: Emit): void {
    emit(Buffer.concat([...this.#header, Buffer.from([RAW_TAG]), encodeVarint(rawLength)]));
    const last = this.#blocks.pop();
    for (const block of this.#blocks) emit(block);
    if (last !== undefined && this.#usedOfBlock > 0) emit(last.subarray(0, this.#usedOfBlock));
    this.#header = [];
    this.#blocks = [];
  }
}

// A field of n zeros takes 1 + varintLength(n) + n bytes. No n gives some sizes, for example 130: then an
// empty field comes first.
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
