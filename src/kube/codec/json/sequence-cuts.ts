// Finds the cuts that remove members or elements from JSON text and leave it valid. Used by the readers of
// frames and metadata.
import type { Edit } from "../base/byte-edit.ts";
import { COMMA, isSpace } from "./scan.ts";

/** The cuts for one object or array. The commas stay right. */
export class SequenceCuts {
  readonly cuts: Edit[] = [];
  readonly #bytes: Uint8Array;
  #previousEnd = 0;
  #anyKept = false;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Adds the next member or element, in order. */
  add(start: number, end: number, remove: boolean): void {
    if (!remove) this.#anyKept = true;
    else if (this.#anyKept) this.cuts.push({ start: this.#previousEnd, end });
    else this.cuts.push({ start, end: this.#behindComma(end) });
    this.#previousEnd = end;
  }

  #behindComma(position: number): number {
    let at = position;
    while (isSpace(this.#bytes[at] ?? 0)) at++;
    return this.#bytes[at] === COMMA ? at + 1 : position;
  }
}
