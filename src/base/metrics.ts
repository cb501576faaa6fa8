// Prometheus metrics. Main creates the one registry of a process and passes it on, so that tests are
// isolated.
import { monitorEventLoopDelay } from "node:perf_hooks";
import Counter from "prom-client/lib/counter.js";
import Gauge from "prom-client/lib/gauge.js";
import Histogram from "prom-client/lib/histogram.js";
import Registry from "prom-client/lib/registry.js";

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

/**
 * Measures how long each turn of the event loop takes, in which a process serves nobody else. It needs no
 * timer, and so wakes no idle process. The returned function ends it.
 * @param program `proxy` or `manager`, as in the metric's name
 */
export function measureEventLoop(registry: Registry, program: "proxy" | "manager"): () => void {
  const histogram = monitorEventLoopDelay({ samplePerIteration: true });
  histogram.enable();
  new Gauge({
    name: `ctrlmesh_${program}_event_loop_delay_seconds`,
    help: "How long a turn of the event loop took since the last scrape, without its wait for events.",
    labelNames: ["quantile"],
    registers: [registry],
    collect() {
      const seconds = (nanoseconds: number) => (Number.isFinite(nanoseconds) ? nanoseconds / 1e9 : 0);
      this.set({ quantile: "0.5" }, seconds(histogram.percentile(50)));
      this.set({ quantile: "0.99" }, seconds(histogram.percentile(99)));
      this.set({ quantile: "1" }, seconds(histogram.max));
      histogram.reset();
    },
  });
  return () => void histogram.disable();
}
