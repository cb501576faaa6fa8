// Splits a protobuf watch stream by the length before each message.
import { ByteWindow } from "../base/byte-window.ts";
import { codecError, type FrameSplitter } from "../base/types.ts";
import { FRAME_PREFIX_BYTES } from "./frame.ts";

export function createFrameSplitter(maxFrameBytes: number): FrameSplitter {
  return new ProtobufFrameSplitter(maxFrameBytes);
}

class ProtobufFrameSplitter implements FrameSplitter {
  readonly #maxFrameBytes: number;
  readonly #window = new ByteWindow();
  #start = 0;

  constructor(maxFrameBytes: number) {
    this.#maxFrameBytes = maxFrameBytes;
  }

  get atBoundary(): boolean {
    return this.#start === this.#window.end;
  }

  push(chunk: Uint8Array, onFrame: (frame: Uint8Array) => void): void {
    this.#window.append(chunk);
    for (;;) {
      const shift = this.#window.extend(this.#start);
      if (shift === undefined) break;
      this.#start -= shift;
      this.#takeFrames(onFrame);
    }
    if (!this.atBoundary) return;
    // An idle watch may last for hours and should not keep its last chunk.
    this.#window.clear();
    this.#start = 0;
  }

  #takeFrames(onFrame: (frame: Uint8Array) => void): void {
    for (;;) {
      const size = this.#frameSize();
      if (size === undefined || this.#window.end - this.#start < size) return;
      const frame = this.#window.bytes.subarray(this.#start, this.#start + size);
      this.#start += size;
      onFrame(frame);
    }
  }

  #frameSize(): number | undefined {
    const { bytes, end } = this.#window;
    if (end - this.#start < FRAME_PREFIX_BYTES) return undefined;
    const size = FRAME_PREFIX_BYTES + bytes.readUInt32BE(this.#start);
    if (size <= this.#maxFrameBytes) return size;
    throw codecError("CODEC_TOO_LARGE", `splitting a protobuf watch: an event over ${this.#maxFrameBytes} bytes`);
  }
}
