// Prometheus metrics. One Registry a process, made in main and handed down; no default registry, so tests are isolated.
import { Counter, Gauge, Histogram, Registry } from "prom-client";

export { Counter, Gauge, Histogram, Registry };

/** A registry that carries `ctrlmesh_build_info`. */
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
