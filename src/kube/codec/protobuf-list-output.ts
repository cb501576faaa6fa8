// The place in a protobuf list that is read, and what becomes of what has been read. Invariant: bytes of the list's message are
// kept, replaced or left out, each once and in order, so that the writer can promise a length. Used by the protobuf list filter.
import { ByteWindow } from "./byte-window.ts";
import type { ProtobufRawWriter } from "./protobuf-raw-writer.ts";
import { encodeBytes } from "./protobuf-wire.ts";
import { codecError, type Emit } from "./types.ts";

export class ProtobufListOutput {
  /** What stands before it is dealt with. It may lie behind the window's end, where what has not come yet is left out. */
  position = 0;
  /** Bytes of the list's message behind `position`. */
  rawLeft = 0;
  readonly #window = new ByteWindow();
  readonly #writer: ProtobufRawWriter;
  /** [mark, position) is kept and not yet written. */
  #mark = 0;

  constructor(writer: ProtobufRawWriter) {
    this.#writer = writer;
  }

  get bytes(): Buffer {
    return this.#window.bytes;
  }

  get end(): number {
    return this.#window.end;
  }

  /** Takes the next chunk; see `extend`. */
  append(chunk: Uint8Array): void {
    this.#window.append(chunk);
  }

  /** Moves on in the chunk. False if it is used up. */
  extend(): boolean {
    const shift = this.#window.extend(this.position);
    if (shift === undefined) return false;
    this.position -= shift;
    this.#mark = this.position;
    return true;
  }

  /** The next bytes stand in front of the message. */
  header(size: number): void {
    this.#writer.header(this.bytes.subarray(this.position, this.position + size));
    this.advance(size);
  }

  /** Goes on without writing what is passed. */
  advance(size: number): void {
    this.position += size;
    this.#mark = this.position;
  }

  /** The next bytes of the message go. */
  keep(size: number): void {
    this.position += size;
    this.rawLeft -= size;
  }

  /** The next bytes, which are whole fields and may not all be there yet, do not go. */
  leaveOut(size: number, emit: Emit): void {
    this.flush(emit);
    this.#writer.drop(size, emit);
    this.advance(size);
    this.rawLeft -= size;
  }

  /** The next field goes with another value. */
  replace(number: number, size: number, value: Uint8Array, emit: Emit): void {
    this.flush(emit);
    const written = encodeBytes(number, value);
    const saved = size - written.length;
    // The length of the whole may have been promised, and no filler has one byte.
    if (saved < 0 || saved === 1)
      throw codecError("CODEC_TOO_LARGE", "filtering a protobuf list: a rewritten field does not fit");
    this.#writer.keep(written, this.rawLeft - written.length, emit);
    if (saved > 0) this.#writer.drop(saved, emit);
    this.advance(size);
    this.rawLeft -= size;
  }

  /** Writes what is kept. */
  flush(emit: Emit): void {
    if (this.position > this.#mark) this.#writer.keep(this.bytes.subarray(this.#mark, this.position), this.rawLeft, emit);
    this.#mark = this.position;
  }

  /** Ends the message. */
  close(emit: Emit): void {
    this.flush(emit);
    this.#writer.close(emit);
  }
}
