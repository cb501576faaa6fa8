// A filter that must not come to its end once what it keeps is not to be trusted any more: its body then breaks off, which a
// client retries. Called for lists, by narrow.ts.
import type { ByteFilter } from "../../kube/codec/types.ts";

/** The filter, which throws the error after the first step behind which it is over. */
export function failWhen(filter: ByteFilter, isOver: () => boolean, error: () => Error): ByteFilter {
  const run = (step: () => void) => {
    step();
    if (isOver()) throw error();
  };
  return {
    push: (chunk, emit) => run(() => filter.push(chunk, emit)),
    end: (emit) => run(() => filter.end(emit)),
    get dropped() {
      return filter.dropped;
    },
    get kept() {
      return filter.kept;
    },
  };
}
