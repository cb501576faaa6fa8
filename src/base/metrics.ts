// Prometheus metrics. Main creates the one registry of a process and passes it on, so that tests are
// isolated.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, Gauge, Histogram, Registry } from "prom-client";

export { Counter, Gauge, Histogram, Registry };

/** A registry with the metric `ctrlmesh_build_info`. */
export function createRegistry(component: string, version: string): Registry {
  const registry = new Registry();
  new Gauge({
    name: "ctrlmesh_build_info",
    help: "Constant 1, labelled by component and version.",
    labelNames: ["component", "version"],
    registers: [registry],
  }).set({ component, version }, 1);
  return registry;
}

/** The time between two samples: short enough to see a blocked loop, long enough to cost nothing. */
const SAMPLE_MS = 100;

/**
 * Measures how late the event loop runs: the time in which a process serves nobody. The returned function
 * ends it.
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
