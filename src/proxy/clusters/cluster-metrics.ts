// What is counted of the requests to each other cluster. Invariant: a cluster that is not served any more has no series.
import { Counter, type Registry } from "../../base/metrics.ts";

export function createClusterMetrics(registry: Registry) {
  const codes = new Map<string, Set<number>>();
  const total = new Counter({
    name: "ctrlmesh_proxy_cluster_requests_total",
    help: "Requests to other clusters whose namespaces the app divides, by cluster and by the code of the answer.",
    labelNames: ["cluster", "code"],
    registers: [registry],
  });
  return {
    answered(cluster: string, code: number): void {
      const seen = codes.get(cluster) ?? new Set();
      codes.set(cluster, seen.add(code));
      total.inc({ cluster, code });
    },
    forget(cluster: string): void {
      for (const code of codes.get(cluster) ?? []) total.remove({ cluster, code });
      codes.delete(cluster);
    },
  };
}
