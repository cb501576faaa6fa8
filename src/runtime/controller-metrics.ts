// The metrics of all controllers of a process and of their queues. Invariant: they have controller-runtime's
// names and its label `controller`, so that existing dashboards and alerts work.
import { Counter, Gauge, Histogram, type Registry } from "../base/metrics.ts";

export interface ControllerMetrics {
  readonly queue: WorkQueueMetrics;
  /** Results: `success`, `requeue_after`, `error`. A reconcile that a stop has ended is not counted. */
  readonly reconciles: Counter<"controller" | "result">;
  readonly errors: Counter<"controller">;
  readonly terminalErrors: Counter<"controller">;
  readonly timeouts: Counter<"controller">;
  readonly duration: Histogram<"controller">;
  readonly active: Gauge<"controller">;
}

export type WorkQueueMetrics = ReturnType<typeof createWorkQueueMetrics>;

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const QUEUE_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60];

/** Call it once for each registry. */
export function createControllerMetrics(registry: Registry): ControllerMetrics {
  const registers = [registry];
  const labelNames = ["controller"] as const;
  const prefix = "controller_runtime";
  const counter = (name: string, help: string) => new Counter({ name: `${prefix}_${name}`, help, labelNames, registers });
  return {
    queue: createWorkQueueMetrics(registry),
    reconciles: new Counter({
      name: `${prefix}_reconcile_total`,
      help: "Reconciles that ended, by result.",
      labelNames: ["controller", "result"],
      registers,
    }),
    errors: counter("reconcile_errors_total", "Reconciles that failed."),
    terminalErrors: counter(
      "terminal_reconcile_errors_total",
      "Reconciles that failed with a terminal error, which is not retried.",
    ),
    timeouts: counter("reconcile_timeouts_total", "Reconciles that reached their timeout."),
    duration: new Histogram({
      name: `${prefix}_reconcile_time_seconds`,
      help: "Duration of reconciles in seconds.",
      labelNames,
      registers,
      buckets: SECONDS,
    }),
    active: new Gauge({ name: `${prefix}_active_workers`, help: "Reconciles that are running.", labelNames, registers }),
  };
}

export function createWorkQueueMetrics(registry: Registry) {
  const common = { labelNames: ["name"] as const, registers: [registry] };
  const running = new Map<string, () => readonly number[]>();
  const times = { ...common, buckets: QUEUE_SECONDS };
  const runningGauge = (name: string, help: string, sum: (ages: readonly number[]) => number) =>
    new Gauge({
      ...common,
      name,
      help,
      collect() {
        for (const [queue, ages] of running) this.set({ name: queue }, sum(ages()));
      },
    });
  runningGauge("workqueue_unfinished_work_seconds", "Sum of the ages of all keys in progress.", (ages) =>
    ages.reduce((sum, age) => sum + age, 0),
  );
  runningGauge("workqueue_longest_running_processor_seconds", "Age of the oldest key in progress.", (ages) =>
    Math.max(0, ...ages),
  );
  return {
    depth: new Gauge({ ...common, name: "workqueue_depth", help: "Keys that wait." }),
    adds: new Counter({ ...common, name: "workqueue_adds_total", help: "Keys added." }),
    retries: new Counter({ ...common, name: "workqueue_retries_total", help: "Keys added again after a failure." }),
    queueDuration: new Histogram({
      name: "workqueue_queue_duration_seconds",
      help: "Time that a key waited, in seconds.",
      ...times,
    }),
    workDuration: new Histogram({
      name: "workqueue_work_duration_seconds",
      help: "Duration of the work on a key, in seconds.",
      ...times,
    }),
    /**
     * Reports keys in progress at each scrape, since workDuration never observes a key whose work hangs.
     * @param ages of the keys in progress, in seconds
     */
    trackRunning: (name: string, ages: () => readonly number[]): void => void running.set(name, ages),
  };
}
