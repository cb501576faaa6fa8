// The frames of a watch that wait behind one with an unknown namespace. Invariant: first in, first out; a
// frame waits for `HOLD_MS` at most, and no longer than the bounds of this queue and of all queues together
// allow.
import type { Clock, Timer } from "../../base/clock.ts";

interface Held {
  readonly frame: Uint8Array;
  readonly sinceMs: number;
}

export interface HeldBudget {
  readonly maxBytes: number;
  bytes: number;
}

interface Owner {
  /** Deals with a frame. False if it has to wait. */
  pass(frame: Uint8Array): boolean;
  /** The frame has waited long enough, or too much waits behind it: the next `pass` must not say "wait". */
  giveUp(frame: Uint8Array): void;
  /** The first frame has waited long enough: `drain` is to be called. */
  onTimeout(): void;
}

const HOLD_MS = 5_000;

export class HoldQueue {
  readonly #clock: Clock;
  readonly #maxBytes: number;
  readonly #budget: HeldBudget;
  readonly #owner: Owner;
  readonly #frames: Held[] = [];
  #bytes = 0;
  #timer: Timer | undefined;

  /** @param budget shared with the queues of other watches */
  constructor(clock: Clock, maxBytes: number, budget: HeldBudget, owner: Owner) {
    this.#clock = clock;
    this.#maxBytes = maxBytes;
    this.#budget = budget;
    this.#owner = owner;
  }

  get isEmpty(): boolean {
    return this.#frames.length === 0;
  }

  /** Passes a frame, or holds it behind others. True if frames have gone that waited: too much was held. */
  take(frame: Uint8Array): boolean {
    if (this.isEmpty && this.#owner.pass(frame)) return false;
    // A copy: the frame must not keep the chunk that it came in alive.
    this.#frames.push({ frame: new Uint8Array(frame), sinceMs: this.#clock.monotonicMs() });
    this.#add(frame.length);
    if (!this.#isTooMuch) this.#arm();
    return this.#isTooMuch;
  }

  drain(): void {
    for (let head = this.#frames[0]; head !== undefined; head = this.#frames[0]) {
      if (!this.#owner.pass(head.frame)) {
        if (!this.#hasWaited(head)) break;
        this.#owner.giveUp(head.frame);
        if (!this.#owner.pass(head.frame)) break;
      }
      this.#add(-(this.#frames.shift()?.frame.length ?? 0));
    }
    this.#disarm();
    this.#arm();
  }

  clear(): void {
    this.#frames.length = 0;
    this.#add(-this.#bytes);
    this.#disarm();
  }

  #hasWaited({ sinceMs }: Held): boolean {
    return this.#isTooMuch || this.#clock.monotonicMs() - sinceMs >= HOLD_MS;
  }

  get #isTooMuch(): boolean {
    return this.#bytes > 0 && (this.#bytes > this.#maxBytes || this.#budget.bytes > this.#budget.maxBytes);
  }

  #add(bytes: number): void {
    this.#bytes += bytes;
    this.#budget.bytes += bytes;
  }

  #arm(): void {
    const [head] = this.#frames;
    if (head === undefined || this.#timer !== undefined) return;
    this.#timer = this.#clock.after(Math.max(0, HOLD_MS - (this.#clock.monotonicMs() - head.sinceMs)), () => {
      this.#timer = undefined;
      this.#owner.onTimeout();
    });
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
