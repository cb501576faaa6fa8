// What to cut out of JSON text so that the rest stays valid. Used where rows and members are dropped.
import type { Edit } from "./byte-edit.ts";
import { COMMA, isSpace } from "./json-scan.ts";

/** Works out what to cut, so that a sequence (members or elements) without some of its parts still has its commas right. */
export class SequenceCuts {
  readonly cuts: Edit[] = [];
  readonly #bytes: Uint8Array;
  #previousEnd = 0;
  #anyKept = false;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Takes the next part, in order. */
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
