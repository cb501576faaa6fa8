// Measures one layer of a stack, for calls with a timing. Called by stack.ts for each layer.
import type { CallNotes, Handler } from "./handler.ts";
import type { LayerTiming } from "./layer-timing.ts";

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
