// Composes named layers to the handler of one kind of traffic.
import type { Clock } from "../../base/clock.ts";
import type { CallNotes, Handler, Layer } from "./handler.ts";
import { LayerTiming } from "./handler.ts";

export interface NamedLayer<C, R> {
  /** Also the value of the label `layer` in metrics. */
  readonly name: string;
  readonly layer: Layer<C, R>;
}

/** One call in so many is measured layer by layer. */
const MEASURED_ONE_IN = 64;

/** @param layers the outermost first; the last one answers by itself */
export function composeStack<C extends { readonly record: CallNotes }, R>(
  layers: readonly NamedLayer<C, R>[],
  clock: Clock,
): Handler<C, R> {
  const unanswered: Handler<C, R> = () => Promise.reject(new Error("serving a call: the last layer must answer it"));
  const handler = layers.reduceRight((next, { layer }, index) => timed(index, layer(next)), unanswered);
  const names = layers.map(({ name }) => name);
  let calls = 0;
  return (call) => {
    if (calls++ % MEASURED_ONE_IN === 0) call.record.timing = new LayerTiming(clock, names);
    return handler(call);
  };
}

/** Counts the time of the handler for its layer. A call without a timing costs one comparison. */
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
