// A bound of requests at once. Invariant: a slot is given back exactly once. A long-running request (a watch,
// a followed log) gives it back when its answer begins: the engine's caller releases it then.
import { type Limiter, PASS } from "./limiter.ts";

/** Nobody knows when a slot becomes free. */
const WAIT_MS = 1_000;

export function createInFlightLimiter(max: number): Limiter {
  let used = 0;
  return {
    ask: () => (used < max ? PASS : { kind: "limited", waitMs: WAIT_MS }),
    charge() {
      used++;
      return { release: () => void used-- };
    },
    state: () => "Closed",
  };
}
