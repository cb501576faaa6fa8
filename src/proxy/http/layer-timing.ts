// Where the time until a reply's head goes, layer by layer. Invariant: every instant counts for exactly one layer, the one that
// holds the call. Only calls with a timing are measured; stack.ts gives one to few calls of many.
import type { Clock } from "../../base/clock.ts";
import type { CallNotes, Handler } from "./handler.ts";

export class LayerTiming {
  /** Milliseconds so far, in the order of the stack. */
  readonly ms: number[];
  /** The names of the layers. */
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

/** The handler, with its time counted for the layer at this index. Costs one comparison for a call without a timing. */
export function timed<C extends { readonly record: CallNotes }, R>(layer: number, handler: Handler<C, R>): Handler<C, R> {
  return (call) => {
    const { timing } = call.record;
    return timing === undefined ? handler(call) : measured(layer, handler, call, timing);
  };
}

async function measured<C, R>(layer: number, handler: Handler<C, R>, call: C, timing: LayerTiming): Promise<R> {
  const before = timing.enter(layer);
  try {
    return await handler(call);
  } finally {
    timing.enter(before);
  }
}
