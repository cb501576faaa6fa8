// The delays of fault rules. Invariants: a client that leaves ends its delay; at most 256 requests of the
// process are delayed at once, and others pass without a delay. Called by the layer `fault` and by the egress
// proxy.
import { type AbortSource, type Clock, sleep } from "../../base/clock.ts";
import type { PolicyMetrics } from "./policy-metrics.ts";

/** Resolves after the delay. @throws MeshError `ABORTED` when the signal fires */
export type Delay = (ms: number, signal: AbortSource) => Promise<void>;

const MAX_DELAYED = 256;

export function createDelay(clock: Clock, metrics: Pick<PolicyMetrics, "delayed" | "delaySkipped">): Delay {
  let delayed = 0;
  return async (ms, signal) => {
    if (delayed >= MAX_DELAYED) return metrics.delaySkipped();
    delayed++;
    try {
      await sleep(clock, ms, signal);
      metrics.delayed(ms / 1_000);
    } finally {
      delayed--;
    }
  };
}
