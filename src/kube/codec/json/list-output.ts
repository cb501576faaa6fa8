// The bytes of a JSON list that go to the client, without dropped elements and their commas. Invariant: each
// byte is emitted at most once, in order, after its element was read. Bytes before `mark` are emitted or
// dropped, those from `mark` to `hold` are to be emitted, and those from `hold` are not decided yet.
import type { ByteWindow } from "../base/byte-window.ts";
import type { Edit } from "../base/bytes.ts";
import type { Emit } from "../base/types.ts";

export class JsonListOutput {
  mark = 0;
  hold = 0;
  readonly #window: ByteWindow;
  #anyKeptInArray = false;

  constructor(window: ByteWindow) {
    this.#window = window;
  }

  /** Lowers the positions by `shift` after a move of the window. */
  move(shift: number): void {
    this.mark -= shift;
    this.hold -= shift;
  }

  /** Keeps everything before the position. */
  pass(position: number): void {
    this.hold = position;
  }

  openArray(position: number): void {
    this.hold = position;
    this.#anyKeptInArray = false;
  }

  /** Drops the comma before an element, unless an element was kept before. */
  dropFirstComma(at: number): void {
    if (!this.#anyKeptInArray) this.mark = this.hold = at + 1;
  }

  keep(end: number): void {
    this.#anyKeptInArray = true;
    this.hold = end;
  }

  replace(start: number, end: number, written: Uint8Array, emit: Emit): void {
    this.#releaseTo(start, emit);
    emit(written);
    this.mark = end;
    this.keep(end);
  }

  drop(end: number, emit: Emit): void {
    this.release(emit);
    this.mark = this.hold = end;
  }

  /** Keeps everything before the position except the cuts. */
  cut(cuts: readonly Edit[], position: number, emit: Emit): void {
    for (const { start, end } of cuts) {
      this.#releaseTo(start, emit);
      this.mark = end;
    }
    this.hold = position;
  }

  /** Emits everything before `hold`. */
  release(emit: Emit): void {
    this.#releaseTo(this.hold, emit);
  }

  #releaseTo(position: number, emit: Emit): void {
    if (position <= this.mark) return;
    emit(this.#window.bytes.subarray(this.mark, position));
    this.mark = position;
  }
}
