// The metrics of all controllers of a process. Invariant: they have controller-runtime's names and its label `controller`, so that
// existing dashboards and alerts work. Made in main, written by running-controller.ts.
import { Counter, Gauge, Histogram, type Registry } from "../base/metrics.ts";
import { createWorkQueueMetrics, type WorkQueueMetrics } from "./work-queue-metrics.ts";

export interface ControllerMetrics {
  readonly queue: WorkQueueMetrics;
  /** By result: `success`, `requeue_after`, `error` (terminal errors too). A reconcile that a stop ended is not counted. */
  readonly reconciles: Counter<"controller" | "result">;
  readonly errors: Counter<"controller">;
  /** Errors that are not retried. */
  readonly terminalErrors: Counter<"controller">;
  readonly timeouts: Counter<"controller">;
  readonly duration: Histogram<"controller">;
  readonly active: Gauge<"controller">;
}

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Registers the metrics, including those of the work queues. Call it once for each registry. */
export function createControllerMetrics(registry: Registry): ControllerMetrics {
  const common = { labelNames: ["controller"] as const, registers: [registry] };
  const prefix = "controller_runtime";
  return {
    queue: createWorkQueueMetrics(registry),
    reconciles: new Counter({
      registers: [registry],
      labelNames: ["controller", "result"],
      name: `${prefix}_reconcile_total`,
      help: "Reconciles that ended, by result.",
    }),
    errors: new Counter({ ...common, name: `${prefix}_reconcile_errors_total`, help: "Reconciles that failed." }),
    terminalErrors: new Counter({
      ...common,
      name: `${prefix}_terminal_reconcile_errors_total`,
      help: "Reconciles that failed with a terminal error, which is not retried.",
    }),
    timeouts: new Counter({
      ...common,
      name: `${prefix}_reconcile_timeouts_total`,
      help: "Reconciles that reached their timeout.",
    }),
    duration: new Histogram({
      ...common,
      name: `${prefix}_reconcile_time_seconds`,
      help: "How long reconciles took.",
      buckets: SECONDS,
    }),
    active: new Gauge({ ...common, name: `${prefix}_active_workers`, help: "Reconciles that are running." }),
  };
}
