// Measures how long proxies take to acknowledge a snapshot: between the registry, which tells what is sent and answered, and the
// metrics. Invariant: one time a pod, and a bounded number, since a pod that dies with a snapshot under way never answers.
import { BoundedMap } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/clock.ts";
import type { ManagerMetrics } from "../metrics/metrics.ts";
import type { ProxyRegistryOptions } from "./proxy-registry.ts";

const MAX_PODS = 10_000;

/** The hooks of the registry. */
export function measureAcks(
  clock: Pick<Clock, "monotonicMs">,
  metrics: Pick<ManagerMetrics, "snapshotAcknowledged">,
): Required<Pick<ProxyRegistryOptions, "onSent" | "onAnswer">> {
  const sentMs = new BoundedMap<string, number>(MAX_PODS);
  return {
    onSent(pod) {
      sentMs.set(pod, clock.monotonicMs());
    },
    onAnswer(pod, answer) {
      const ms = sentMs.get(pod);
      sentMs.delete(pod);
      if (ms !== undefined && answer === "acked") metrics.snapshotAcknowledged((clock.monotonicMs() - ms) / 1000);
    },
  };
}
