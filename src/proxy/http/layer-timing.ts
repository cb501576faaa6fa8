// Where the time until a reply's head goes. Every instant counts for the one layer that holds the call.
import type { Clock } from "../../base/clock.ts";

export class LayerTiming {
  /** Milliseconds so far, in the order of the stack. */
  readonly ms: number[];
  readonly names: readonly string[];
  readonly #clock: Clock;
  #at = 0;
  #sinceMs: number;

  /** Starts in the outermost layer. */
  constructor(clock: Clock, names: readonly string[]) {
    this.names = names;
    this.ms = new Array<number>(names.length).fill(0);
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  /** From now on the time counts for this layer. Returns the layer before. */
  enter(layer: number): number {
    const nowMs = this.#clock.monotonicMs();
    const before = this.#at;
    this.ms[before] = (this.ms[before] ?? 0) + nowMs - this.#sinceMs;
    this.#sinceMs = nowMs;
    this.#at = layer;
    return before;
  }
}
