// Metrics of the listener for the operator's webhooks. Its thread sends them a moment later.
import { Counter, Gauge, Histogram, type Registry } from "../../base/metrics.ts";
import type { Observation } from "./thread-messages.ts";

const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export function createReviewMetrics(registry: Registry, isReady: () => boolean) {
  const registers = [registry];
  const total = new Counter({
    name: "ctrlmesh_proxy_reviews_total",
    help: "Calls of the operator's webhooks by result, and by who has sent them. A call from a peer is never forwarded again.",
    labelNames: ["result", "from"],
    registers,
  });
  const duration = new Histogram({
    name: "ctrlmesh_proxy_review_duration_seconds",
    help: "From the call of a webhook to the head of its answer.",
    labelNames: ["result"],
    buckets: BUCKETS,
    registers,
  });
  const restarts = new Counter({
    name: "ctrlmesh_proxy_webhook_thread_restarts_total",
    help: "How often the thread of the listener for the operator's webhooks has ended by itself and was started again.",
    registers,
  });
  new Gauge({
    name: "ctrlmesh_proxy_webhook_certificate_ready",
    help: "1 if the proxy can serve with the certificate of the operator's webhook server.",
    registers,
    collect() {
      this.set(isReady() ? 1 : 0);
    },
  });
  return {
    observed(observations: readonly Observation[]): void {
      for (const { result, isFromPeer, seconds } of observations) {
        total.inc({ result, from: isFromPeer ? "peer" : "api-server" });
        duration.observe({ result }, seconds);
      }
    },
    /** The thread of the listener has ended, and another one starts. */
    restarted: () => restarts.inc(),
  };
}
