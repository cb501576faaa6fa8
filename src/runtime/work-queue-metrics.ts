// The metrics of all work queues of a process. Invariant: they have client-go's names and its label `name`; all queues share one
// instance for each registry. Made by controller-metrics.ts.
import { Counter, Gauge, Histogram, type Registry } from "../base/metrics.ts";

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

const SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60];

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
      help: "How long a key waited.",
      buckets: SECONDS,
    }),
    workDuration: new Histogram({
      ...common,
      name: "workqueue_work_duration_seconds",
      help: "How long the work on a key took.",
      buckets: SECONDS,
    }),
    trackRunning: (name, ages) => void running.set(name, ages),
  };
}
