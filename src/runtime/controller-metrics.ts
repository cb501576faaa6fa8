// The metrics of all controllers of a process. Invariant: they have controller-runtime's names and its label
// `controller`, so that existing dashboards and alerts work. Created in main, written by
// running-controller.ts.
import { Counter, Gauge, Histogram, type Registry } from "../base/metrics.ts";

export interface ControllerMetrics {
  readonly queue: WorkQueueMetrics;
  /**
   * By result: `success`, `requeue_after`, `error` (terminal errors too). A reconcile that ended because of a
   * stop is not counted.
   */
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
      help: "Duration of reconciles in seconds.",
      buckets: SECONDS,
    }),
    active: new Gauge({ ...common, name: `${prefix}_active_workers`, help: "Reconciles that are running." }),
  };
}

export interface WorkQueueMetrics {
  readonly depth: Gauge<"name">;
  readonly adds: Counter<"name">;
  readonly retries: Counter<"name">;
  readonly queueDuration: Histogram<"name">;
  readonly workDuration: Histogram<"name">;
  /**
   * Reports keys in progress at each scrape, since workDuration never observes a key whose work hangs.
   * @param ages the age of each key in progress, in seconds
   */
  trackRunning(name: string, ages: () => readonly number[]): void;
}

const QUEUE_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60];

/** Registers the metrics. Call it once for each registry. */
export function createWorkQueueMetrics(registry: Registry): WorkQueueMetrics {
  const common = { labelNames: ["name"] as const, registers: [registry] };
  const running = new Map<string, () => readonly number[]>();
  runningGauge("workqueue_unfinished_work_seconds", "Sum of the ages of all keys in progress.", (ages) =>
    ages.reduce((sum, age) => sum + age, 0),
  );
  runningGauge("workqueue_longest_running_processor_seconds", "Age of the oldest key in progress.", (ages) =>
    Math.max(0, ...ages),
  );

  function runningGauge(name: string, help: string, sum: (ages: readonly number[]) => number): void {
    new Gauge({
      ...common,
      name,
      help,
      collect() {
        for (const [queue, ages] of running) this.set({ name: queue }, sum(ages()));
      },
    });
  }

  return {
    depth: new Gauge({ ...common, name: "workqueue_depth", help: "Keys that wait." }),
    adds: new Counter({ ...common, name: "workqueue_adds_total", help: "Keys added." }),
    retries: new Counter({ ...common, name: "workqueue_retries_total", help: "Keys added again after a failure." }),
    queueDuration: new Histogram({
      ...common,
      name: "workqueue_queue_duration_seconds",
      help: "Time that a key waited, in seconds.",
      buckets: QUEUE_SECONDS,
    }),
    workDuration: new Histogram({
      ...common,
      name: "workqueue_work_duration_seconds",
      help: "Duration of the work on a key, in seconds.",
      buckets: QUEUE_SECONDS,
    }),
    trackRunning: (name, ages) => void running.set(name, ages),
  };
}
