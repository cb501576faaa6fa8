// Where the time until a reply's head goes, layer by layer. Invariant: every instant counts for exactly one layer, that which
// holds the call; two readings of the clock a layer. Only one call of many is measured: those that the pipeline gives a timing.
import type { Clock } from "../../base/clock.ts";
import type { Handler } from "./handler.ts";

/** In the order of the request. `upstream` is the wait for the API server; `isolate` has the wait for a namespace's owner. */
export const LAYERS = ["request-info", "caller", "election", "isolate", "upstream"] as const;
export type LayerName = (typeof LAYERS)[number];

export class LayerTiming {
  /** Milliseconds so far, in the order of LAYERS. */
  readonly ms: number[] = LAYERS.map(() => 0);
  readonly #clock: Clock;
  #at = 0;
  #sinceMs: number;

  /** Starts in the first layer. */
  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  /** From now on it is this layer's time. Returns the layer before. */
  enter(layer: number): number {
    const nowMs = this.#clock.monotonicMs();
    const before = this.#at;
    this.ms[before] = (this.ms[before] ?? 0) + nowMs - this.#sinceMs;
    this.#sinceMs = nowMs;
    this.#at = layer;
    return before;
  }
}

/** The handler, its time counted for a layer. */
export function timed(name: LayerName, handler: Handler): Handler {
  const layer = LAYERS.indexOf(name);
  return async (call) => {
    const { timing } = call.record;
    const before = timing?.enter(layer) ?? 0;
    try {
      return await handler(call);
    } finally {
      timing?.enter(before);
    }
  };
}
