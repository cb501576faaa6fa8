// How late the event loop runs: the time in which a process serves nobody. Both programs have this metric.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Gauge, type Registry } from "./metrics.ts";

/** Time between two samples, in milliseconds: enough to see a blocked loop, too rare to cost anything. */
const SAMPLE_MS = 100;

/**
 * Begins to measure. The returned function ends it.
 * @param program `proxy` or `manager`, as in the metric's name
 */
export function measureEventLoop(registry: Registry, program: "proxy" | "manager"): () => void {
  const histogram = monitorEventLoopDelay({ resolution: SAMPLE_MS });
  histogram.enable();
  new Gauge({
    name: `ctrlmesh_${program}_event_loop_delay_seconds`,
    help: "How late the event loop ran since the last scrape.",
    labelNames: ["quantile"],
    registers: [registry],
    collect() {
      // Node measures from one sample to the next, and so counts the wait between them as well.
      const seconds = (nanoseconds: number) =>
        Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e9 - SAMPLE_MS / 1e3) : 0;
      this.set({ quantile: "0.5" }, seconds(histogram.percentile(50)));
      this.set({ quantile: "0.99" }, seconds(histogram.percentile(99)));
      this.set({ quantile: "1" }, seconds(histogram.max));
      histogram.reset();
    },
  });
  return () => void histogram.disable();
}
