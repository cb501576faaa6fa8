// Prometheus metrics. Invariant: main creates the one registry of a process and passes it on; there is no
// default registry, so that tests are isolated.
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
