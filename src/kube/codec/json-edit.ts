// Edits on JSON text that leave every other byte as it is. Used where rows are dropped and names are replaced.
import { COMMA, isSpace } from "./json-scan.ts";

/** What stands from `start` to `end` is replaced, or left out. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly replacement?: Uint8Array;
}

/** The text with the edits made; they must be in order and apart. The same array if there are none. */
export function applyEdits(bytes: Uint8Array, edits: readonly Edit[]): Uint8Array {
  if (edits.length === 0) return bytes;
  const parts: Uint8Array[] = [];
  let from = 0;
  for (const { start, end, replacement } of edits) {
    parts.push(bytes.subarray(from, start));
    if (replacement !== undefined) parts.push(replacement);
    from = end;
  }
  parts.push(bytes.subarray(from));
  return Buffer.concat(parts);
}

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
