// The metrics of all work queues of a process, under client-go's names with the label `name`. One a registry: the
// queues share it.
import { Counter, Gauge, Histogram, type Registry } from "../base/metrics.ts";

export interface WorkQueueMetrics {
  readonly depth: Gauge<"name">;
  readonly adds: Counter<"name">;
  readonly retries: Counter<"name">;
  readonly queueDuration: Histogram<"name">;
  readonly workDuration: Histogram<"name">;
  /**
   * Has what is being worked on told at every scrape: a key that hangs is never observed in workDuration.
   * @param ages for how long each running piece of work has been running, in seconds
   */
  trackRunning(name: string, ages: () => readonly number[]): void;
}

const SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60];

/** Registers the metrics; call it once a registry. */
export function createWorkQueueMetrics(registry: Registry): WorkQueueMetrics {
  const common = { labelNames: ["name"] as const, registers: [registry] };
  const running = new Map<string, () => readonly number[]>();
  runningGauge("workqueue_unfinished_work_seconds", "Seconds of work in progress, all keys together.", (ages) =>
    ages.reduce((sum, age) => sum + age, 0),
  );
  runningGauge("workqueue_longest_running_processor_seconds", "How long the oldest work in progress has been running.", (ages) =>
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
      help: "How long a key was worked on.",
      buckets: SECONDS,
    }),
    trackRunning: (name, ages) => void running.set(name, ages),
  };
}
