// The frames of a watch that wait behind one whose namespace nobody knows yet. Invariant: first in, first out, and never
// more than the bound: who is over it gives the wait up. Called by the watch stream.

interface Held {
  readonly frame: Uint8Array;
  readonly sinceMs: number;
}

export class HeldFrames {
  readonly #frames: Held[] = [];
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get isEmpty(): boolean {
    return this.#frames.length === 0;
  }

  /** More is held than may be. */
  get isOver(): boolean {
    return this.#bytes > this.#maxBytes;
  }

  get head(): Held | undefined {
    return this.#frames[0];
  }

  /** Copies the frame, so that it does not keep the whole chunk that it came in alive. */
  push(frame: Uint8Array, nowMs: number): void {
    this.#frames.push({ frame: new Uint8Array(frame), sinceMs: nowMs });
    this.#bytes += frame.length;
  }

  shift(): void {
    this.#bytes -= this.#frames.shift()?.frame.length ?? 0;
  }

  clear(): void {
    this.#frames.length = 0;
    this.#bytes = 0;
  }
}
