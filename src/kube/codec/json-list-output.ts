// What of a JSON list goes to the client: runs of kept bytes, without the dropped elements and their commas. Invariant: a byte is
// released once and in order, and only after what it belongs to has been decided. Used by the JSON list filter only.
//
// Positions in the window: [mark, hold) goes to the client, [hold, ...) is read but not decided.
import type { Edit } from "./byte-edit.ts";
import type { ByteWindow } from "./byte-window.ts";
import type { Emit } from "./types.ts";

export class JsonListOutput {
  mark = 0;
  hold = 0;
  readonly #window: ByteWindow;
  #anyKeptInArray = false;

  constructor(window: ByteWindow) {
    this.#window = window;
  }

  /** Everything lies `shift` lower in the window now. */
  move(shift: number): void {
    this.mark -= shift;
    this.hold -= shift;
  }

  /** What stands before this position goes. */
  pass(position: number): void {
    this.hold = position;
  }

  /** An array begins behind this position. */
  openArray(position: number): void {
    this.hold = position;
    this.#anyKeptInArray = false;
  }

  /** A comma goes with the element behind it, unless nothing has been kept before. */
  comma(at: number): void {
    if (!this.#anyKeptInArray) this.mark = this.hold = at + 1;
  }

  /** The element that ends here goes. */
  keep(end: number): void {
    this.#anyKeptInArray = true;
    this.hold = end;
  }

  /** The element between these positions goes with other bytes. */
  replace(start: number, end: number, written: Uint8Array, emit: Emit): void {
    this.#releaseTo(start, emit);
    emit(written);
    this.mark = end;
    this.keep(end);
  }

  /** The element that ends here does not go. */
  drop(end: number, emit: Emit): void {
    this.release(emit);
    this.mark = this.hold = end;
  }

  /** Passes what stands before this position, but for these parts. */
  cut(cuts: readonly Edit[], position: number, emit: Emit): void {
    for (const { start, end } of cuts) {
      this.#releaseTo(start, emit);
      this.mark = end;
    }
    this.hold = position;
  }

  /** Hands on what is decided. */
  release(emit: Emit): void {
    this.#releaseTo(this.hold, emit);
  }

  #releaseTo(position: number, emit: Emit): void {
    if (position <= this.mark) return;
    emit(this.#window.bytes.subarray(this.mark, position));
    this.mark = position;
  }
}
