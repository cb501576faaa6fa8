// Splits a JSON watch stream into its documents: one chunk may hold several, and white space between them is
// free. Each frame ends with one newline, for clients that read lines.
import { ByteWindow } from "../base/byte-window.ts";
import { codecError, type FrameSplitter } from "../base/types.ts";
import { NEWLINE, OPEN_BRACE, skipSpace } from "./scan.ts";
import { JsonWalker } from "./walker.ts";

export function createFrameSplitter(maxFrameBytes: number): FrameSplitter {
  return new JsonFrameSplitter(maxFrameBytes);
}

class JsonFrameSplitter implements FrameSplitter {
  readonly #maxFrameBytes: number;
  readonly #window = new ByteWindow();
  readonly #walker = new JsonWalker();
  /** Where the current document begins. */
  #start = 0;
  #inDocument = false;

  constructor(maxFrameBytes: number) {
    this.#maxFrameBytes = maxFrameBytes;
  }

  get atBoundary(): boolean {
    return !this.#inDocument;
  }

  push(chunk: Uint8Array, onFrame: (frame: Uint8Array) => void): void {
    this.#window.append(chunk);
    for (;;) {
      const shift = this.#window.extend(this.#start);
      if (shift === undefined) break;
      this.#start -= shift;
      this.#walker.moveTo(this.#window.bytes, this.#window.end, shift);
      this.#takeDocuments(onFrame);
    }
    if (this.#inDocument) return;
    // An idle watch may last for hours and should not keep its last chunk.
    this.#window.clear();
    this.#walker.moveTo(this.#window.bytes, 0, 0);
    this.#start = 0;
  }

  #takeDocuments(onFrame: (frame: Uint8Array) => void): void {
    while (this.#inDocument || this.#openDocument()) {
      const isWhole = this.#walker.skip();
      this.#bound((isWhole ? this.#walker.valueEnd : this.#window.end) - this.#start);
      if (!isWhole) return;
      const frame = this.#takeFrame(this.#walker.valueEnd);
      this.#inDocument = false;
      onFrame(frame);
    }
  }

  // False if only white space is left.
  #openDocument(): boolean {
    const { bytes, end } = this.#window;
    this.#start = skipSpace(bytes, this.#start, end);
    if (this.#start === end) return false;
    if (bytes[this.#start] !== OPEN_BRACE) throw codecError("CODEC_MALFORMED", "splitting a JSON watch: an object was expected");
    this.#walker.start(bytes, this.#start, end).next();
    this.#inDocument = true;
    return true;
  }

  #takeFrame(behind: number): Uint8Array {
    const { bytes, end } = this.#window;
    const start = this.#start;
    const hasNewline = behind < end && bytes[behind] === NEWLINE;
    this.#start = hasNewline ? behind + 1 : behind;
    return hasNewline
      ? bytes.subarray(start, behind + 1)
      : Buffer.concat([bytes.subarray(start, behind), Buffer.from([NEWLINE])]);
  }

  #bound(size: number): void {
    if (size > this.#maxFrameBytes)
      throw codecError("CODEC_TOO_LARGE", `splitting a JSON watch: an event over ${this.#maxFrameBytes} bytes`);
  }
}
