// The frames of a watch that wait behind one with an unknown namespace. Invariant: first in, first out; a
// frame waits for `HOLD_MS` at most, and less if this queue or all queues together hold too many bytes.
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
  /** Shows or drops a frame. False if the frame has to wait. */
  pass(frame: Uint8Array): boolean;
  /** Counts the namespaces that the frame waits for as held. Returns the end of that. */
  beginHold(frame: Uint8Array): () => void;
  /** Called before the last `pass` of a frame, which must return true. */
  giveUp(frame: Uint8Array): void;
  /** Called when the first frame has waited long enough. The owner then calls `drain`. */
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
  #endHold: () => void = () => undefined;

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

  get heldBytes(): number {
    return this.#bytes;
  }

  /** Passes or holds a frame. True if the queue holds too much: the owner then calls `drain`. */
  take(frame: Uint8Array): boolean {
    if (this.isEmpty && this.#pass(frame)) return false;
    // A copy, so that the frame does not keep its whole chunk alive.
    this.#frames.push({ frame: new Uint8Array(frame), sinceMs: this.#clock.monotonicMs() });
    this.#add(frame.length);
    if (!this.#isTooMuch) this.#arm();
    return this.#isTooMuch;
  }

  drain(): void {
    for (let head = this.#frames[0]; head !== undefined; head = this.#frames[0]) {
      if (!this.#pass(head.frame)) {
        if (!this.#hasWaited(head)) break;
        this.#owner.giveUp(head.frame);
        if (!this.#pass(head.frame)) break;
      }
      this.#add(-(this.#frames.shift()?.frame.length ?? 0));
    }
    this.#disarm();
    this.#arm();
    if (this.isEmpty) this.#endHold();
  }

  clear(): void {
    this.#frames.length = 0;
    this.#add(-this.#bytes);
    this.#disarm();
    this.#endHold();
  }

  #pass(frame: Uint8Array): boolean {
    if (this.#owner.pass(frame)) return true;
    const endBefore = this.#endHold;
    this.#endHold = this.#owner.beginHold(frame);
    endBefore(); // last, so that a namespace that both frames wait for stays counted
    return false;
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
