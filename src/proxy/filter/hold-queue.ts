// The frames of a watch that wait behind one with an unknown namespace. Invariant: first in, first out; a
// frame waits for `holdMs` at most, and no longer than its own bound and the bound of all watches together
// allow.
import type { Clock, Timer } from "../../base/clock.ts";

interface Held {
  readonly frame: Uint8Array;
  readonly sinceMs: number;
}

/** What the stalled watches of a proxy hold together. */
export interface HeldBudget {
  readonly maxBytes: number;
  bytes: number;
}

export interface HoldQueueOptions {
  readonly clock: Clock;
  readonly holdMs: number;
  /** Bound of this queue. */
  readonly maxBytes: number;
  /** Shared with the queues of other watches. */
  readonly budget: HeldBudget;
  /** Deals with a frame. False if it has to wait. */
  readonly pass: (frame: Uint8Array) => boolean;
  /**
   * The first frame has waited long enough, or too much waits behind it: the next `pass` must not say "wait".
   */
  readonly giveUp: (frame: Uint8Array) => void;
  /** The first frame has waited long enough: `drain` is to be called. */
  readonly onTimeout: () => void;
}

export class HoldQueue {
  readonly #options: HoldQueueOptions;
  readonly #frames: Held[] = [];
  #bytes = 0;
  #timer: Timer | undefined;

  constructor(options: HoldQueueOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#frames.length === 0;
  }

  /** Passes a frame, or holds it behind others. True if frames have gone that waited: too much was held. */
  take(frame: Uint8Array): boolean {
    if (this.isEmpty && this.#options.pass(frame)) return false;
    // A copy: the frame must not keep the chunk that it came in alive.
    this.#frames.push({ frame: new Uint8Array(frame), sinceMs: this.#options.clock.monotonicMs() });
    this.#add(frame.length);
    if (!this.#isTooMuch) this.#arm();
    return this.#isTooMuch;
  }

  /** Lets all frames go that can go by now. */
  drain(): void {
    const { pass, giveUp } = this.#options;
    for (let head = this.#frames[0]; head !== undefined; head = this.#frames[0]) {
      if (!pass(head.frame)) {
        if (!this.#hasWaited(head)) break;
        giveUp(head.frame);
        if (!pass(head.frame)) break;
      }
      this.#add(-(this.#frames.shift()?.frame.length ?? 0));
    }
    this.#disarm();
    this.#arm();
  }

  /** Forgets all frames. */
  clear(): void {
    this.#frames.length = 0;
    this.#add(-this.#bytes);
    this.#disarm();
  }

  #hasWaited({ sinceMs }: Held): boolean {
    const { clock, holdMs } = this.#options;
    return this.#isTooMuch || clock.monotonicMs() - sinceMs >= holdMs;
  }

  get #isTooMuch(): boolean {
    const { maxBytes, budget } = this.#options;
    return this.#bytes > 0 && (this.#bytes > maxBytes || budget.bytes > budget.maxBytes);
  }

  #add(bytes: number): void {
    this.#bytes += bytes;
    this.#options.budget.bytes += bytes;
  }

  #arm(): void {
    const [head] = this.#frames;
    if (head === undefined || this.#timer !== undefined) return;
    const { clock, holdMs, onTimeout } = this.#options;
    this.#timer = clock.after(Math.max(0, holdMs - (clock.monotonicMs() - head.sinceMs)), () => {
      this.#timer = undefined;
      onTimeout();
    });
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
