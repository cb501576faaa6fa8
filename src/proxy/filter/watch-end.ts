// The state of a watch: open, about to expire, or over. A watch expires when its client has to list again; a random delay spreads the
// lists of many watches. Invariant: a watch expires once at most, and never after its end. Called by the watch stream.
import type { Clock, Timer } from "../../base/clock.ts";

type State =
  | { readonly kind: "open" }
  /** The watch goes on until then. `isInTurn`: it waits for its turn among many that expire. */
  | { readonly kind: "expiring"; readonly atMs: number; readonly isInTurn: boolean }
  | { readonly kind: "over" };

type EndEvent =
  | { readonly kind: "list-again"; readonly atMs: number; readonly isInTurn: boolean }
  | { readonly kind: "finished" };

function step(before: State, event: EndEvent): State {
  switch (event.kind) {
    case "list-again":
      // over => over
      if (before.kind === "over") return before;
      // open => expiring
      if (before.kind === "open") return { ...event, kind: "expiring" };
      // expiring => expiring   it was waiting for its turn and now need not wait: the earlier of both times counts
      return before.isInTurn && !event.isInTurn
        ? { ...event, kind: "expiring", atMs: Math.min(before.atMs, event.atMs) }
        : before;
    // open, expiring => over   the watch has expired, or either side has ended it
    case "finished":
      return { kind: "over" };
    default:
      return event satisfies never;
  }
}

export class WatchEnd {
  readonly #clock: Clock;
  readonly #onExpired: () => void;
  #state: State = { kind: "open" };
  #timer: Timer | undefined;

  constructor(clock: Clock, onExpired: () => void) {
    this.#clock = clock;
    this.#onExpired = onExpired;
  }

  get isOpen(): boolean {
    return this.#state.kind === "open";
  }

  /** True if the client has to list again, whatever else comes. Not so while the watch waits for its turn. */
  get isMuted(): boolean {
    return this.#state.kind === "expiring" && !this.#state.isInTurn;
  }

  get isOver(): boolean {
    return this.#state.kind === "over";
  }

  /**
   * The client has to list again: `onExpired` is called after this time. A time from an earlier call stays, but if that call was in turn and
   * this one is not, the earlier of both times counts.
   */
  expireAfter(delayMs: number, { isInTurn = false } = {}): void {
    this.#on({ kind: "list-again", atMs: this.#clock.monotonicMs() + delayMs, isInTurn });
  }

  /** The watch is over. False if it was over before. */
  finish(): boolean {
    if (this.isOver) return false;
    this.#on({ kind: "finished" });
    return true;
  }

  #on(event: EndEvent): void {
    const before = this.#state;
    this.#state = step(before, event);
    if (this.#state === before) return;
    this.#timer?.cancel();
    if (this.#state.kind !== "expiring") return;
    this.#timer = this.#clock.after(this.#state.atMs - this.#clock.monotonicMs(), this.#onExpired);
  }
}
