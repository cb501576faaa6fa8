// The frames of a watch that wait behind one whose namespace nobody knows yet. Invariant: first in, first out, and never more
// than the bounds, of one watch and of all together: who is over one gives the wait up. Called by the watch stream.

interface Held {
  readonly frame: Uint8Array;
  readonly sinceMs: number;
}

/** What the stalled watches of a proxy hold together. */
export interface HeldBudget {
  readonly maxBytes: number;
  bytes: number;
}

export class HeldFrames {
  readonly #frames: Held[] = [];
  readonly #maxBytes: number;
  readonly #budget: HeldBudget;
  #bytes = 0;

  /** @param budget shared with other watches; default: none but this one's */
  constructor(maxBytes: number, budget: HeldBudget = { maxBytes, bytes: 0 }) {
    this.#maxBytes = maxBytes;
    this.#budget = budget;
  }

  get isEmpty(): boolean {
    return this.#frames.length === 0;
  }

  /** More is held than may be. */
  get isOver(): boolean {
    return this.#bytes > 0 && (this.#bytes > this.#maxBytes || this.#budget.bytes > this.#budget.maxBytes);
  }

  get head(): Held | undefined {
    return this.#frames[0];
  }

  /** Copies the frame, so that it does not keep the whole chunk that it came in alive. */
  push(frame: Uint8Array, nowMs: number): void {
    this.#frames.push({ frame: new Uint8Array(frame), sinceMs: nowMs });
    this.#add(frame.length);
  }

  shift(): void {
    this.#add(-(this.#frames.shift()?.frame.length ?? 0));
  }

  clear(): void {
    this.#frames.length = 0;
    this.#add(-this.#bytes);
  }

  #add(bytes: number): void {
    this.#bytes += bytes;
    this.#budget.bytes += bytes;
  }
}
