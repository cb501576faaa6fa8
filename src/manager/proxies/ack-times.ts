// Measures how long proxies take to acknowledge a snapshot: between the registry, which tells what is sent and answered, and the
// metrics. Invariant: one time a pod, and a bounded number, since a pod that dies with a snapshot under way never answers.
import type { Clock } from "../../base/clock.ts";
import type { ManagerMetrics } from "../metrics/metrics.ts";
import type { ProxyRegistryOptions } from "./proxy-registry.ts";

const MAX_PODS = 10_000;

/** The hooks of the registry. */
export function measureAcks(
  clock: Pick<Clock, "monotonicMs">,
  metrics: Pick<ManagerMetrics, "snapshotAcknowledged">,
): Required<Pick<ProxyRegistryOptions, "onSent" | "onAnswer">> {
  const sentMs = new Map<string, number>();
  return {
    onSent(pod) {
      sentMs.delete(pod); // to the end: the oldest goes first
      sentMs.set(pod, clock.monotonicMs());
      for (const oldest of sentMs.size > MAX_PODS ? sentMs.keys().take(1) : []) sentMs.delete(oldest);
    },
    onAnswer(pod, answer) {
      const ms = sentMs.get(pod);
      sentMs.delete(pod);
      if (ms !== undefined && answer === "acked") metrics.snapshotAcknowledged((clock.monotonicMs() - ms) / 1000);
    },
  };
}
