// The manager's own metrics, read from the registry when they are scraped. Labels name apps' subsets by state only, never
// namespaces or pods.
import { Gauge, type Registry } from "../base/metrics.ts";
import type { ProxyRegistry } from "./snapshot-server/proxy-registry.ts";

export interface ManagerMetricsOptions {
  readonly metricsRegistry: Registry;
  readonly registry: ProxyRegistry;
  readonly isLeader: () => boolean;
}

export function createManagerMetrics({ metricsRegistry, registry, isLeader }: ManagerMetricsOptions): void {
  const registers = [metricsRegistry];
  new Gauge({
    name: "ctrlmesh_manager_leader",
    help: "1 while this replica leads.",
    registers,
    collect() {
      this.set(isLeader() ? 1 : 0);
    },
  });
  new Gauge({
    name: "ctrlmesh_manager_proxies",
    help: "Proxies by app, subset and state.",
    labelNames: ["virtualapp", "subset", "state"],
    registers,
    collect() {
      this.reset();
      for (const pod of registry.pods) {
        const facts = registry.facts(pod);
        const snapshot = facts?.enforced ?? facts?.outstanding;
        if (facts === undefined || snapshot === undefined) continue;
        const virtualapp = `${snapshot.app.namespace}/${snapshot.app.name}`;
        this.inc({ virtualapp, subset: snapshot.subset, state: stateOf(facts) });
      }
    },
  });
}

function stateOf(facts: { connected: boolean; outstanding: unknown; problems: readonly string[] }): string {
  if (!facts.connected) return "disconnected";
  if (facts.problems.length > 0) return "rejected";
  return facts.outstanding === undefined ? "synced" : "pending";
}
