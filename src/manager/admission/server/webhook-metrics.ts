// The metrics of the webhooks. Invariant: label values come from fixed lists, and are never names of apps,
// pods or namespaces.
import { Counter, Histogram, type Registry } from "../../../base/metrics.ts";
import type { WebhookName } from "./webhook.ts";

/**
 * How a request ended: `allowed`, `patched` and `refused` are answers. `bad-request`: the request is
 * malformed. `unavailable`: no answer is possible now. `failed`: a fault of the manager.
 */
const WEBHOOK_RESULTS = ["allowed", "patched", "refused", "bad-request", "unavailable", "failed"] as const;

export type WebhookResult = (typeof WEBHOOK_RESULTS)[number];

export interface WebhookMetrics {
  answered(webhook: WebhookName | "none", result: WebhookResult, seconds: number): void;
  /** Counts a failed TLS handshake. The usual cause is a client that does not trust the mesh's CA. */
  handshakeFailed(): void;
}

const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export function createWebhookMetrics(registry: Registry): WebhookMetrics {
  const registers = [registry];
  const requests = new Counter({
    name: "ctrlmesh_manager_webhook_requests_total",
    help: "Requests to the admission webhooks, by webhook and result.",
    labelNames: ["webhook", "result"],
    registers,
  });
  for (const webhook of ["inject", "validate"]) for (const result of WEBHOOK_RESULTS) requests.inc({ webhook, result }, 0);
  const seconds = new Histogram({
    name: "ctrlmesh_manager_webhook_duration_seconds",
    help: "Time from a request's headers to its answer.",
    labelNames: ["webhook"],
    buckets: BUCKETS,
    registers,
  });
  const handshakes = new Counter({
    name: "ctrlmesh_manager_webhook_handshake_failures_total",
    help: "TLS handshakes of the webhooks that failed: the client does not trust the mesh's CA, or speaks no TLS.",
    registers,
  });
  return {
    answered(webhook, result, duration) {
      requests.inc({ webhook, result });
      seconds.observe({ webhook }, duration);
    },
    handshakeFailed: () => handshakes.inc(),
  };
}
