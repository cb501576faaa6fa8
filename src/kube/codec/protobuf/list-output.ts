// The position in a protobuf list and the bytes that go to the client. Each byte of the list's message is
// kept, replaced or left out, once and in order, so that the writer can promise a length.
import { ByteWindow } from "../base/byte-window.ts";
import { codecError, type Emit } from "../base/types.ts";
import type { ProtobufRawWriter } from "./raw-writer.ts";
import { encodeBytes } from "./wire.ts";

export class ProtobufListOutput {
  /**
   * Everything before it is processed. It may be after the end of the window, when bytes that have not
   * arrived yet are left out.
   */
  position = 0;
  /** Bytes of the list's message after `position`. */
  rawLeft = 0;
  readonly #window = new ByteWindow();
  readonly #writer: ProtobufRawWriter;
  /** [mark, position) is kept and not written yet. */
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

  /** Takes the next chunk. See `extend`. */
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

  /** Copies the next bytes, which come before the message. */
  header(size: number): void {
    this.#writer.header(this.bytes.subarray(this.position, this.position + size));
    this.advance(size);
  }

  /** Skips bytes without writing them. */
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
    this.#writer.drop(size, emit);
    this.advance(size);
    this.rawLeft -= size;
  }

  /** Writes the next field with another value. */
  replace(number: number, size: number, value: Uint8Array, emit: Emit): void {
    this.flush(emit);
    const written = encodeBytes(number, value);
    const saved = size - written.length;
    // The length of the message may have been promised, and no filler has one byte.
    if (saved < 0 || saved === 1)
      throw codecError("CODEC_TOO_LARGE", "filtering a protobuf list: a rewritten field does not fit");
    this.#writer.keep(written, this.rawLeft - written.length, emit);
    if (saved > 0) this.#writer.drop(saved, emit);
    this.advance(size);
    this.rawLeft -= size;
  }

  /** Writes the kept bytes. */
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
