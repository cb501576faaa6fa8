// What the egress proxy counts, for each other cluster that the app divides and for all other servers together. Invariant: a cluster
// that is no longer in the pod's routes has no series, so their number is bounded however many MeshClusters come and go.
import { Counter, Gauge, type Registry } from "../../base/metrics.ts";
import { remember } from "../../base/remember.ts";
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import type { EgressResult } from "./egress-error.ts";

/** The label of servers that no cluster has. */
export const NO_CLUSTER = "";

export type EgressMetrics = ReturnType<typeof createEgressMetrics>;

const namesOf = remember((clusters: readonly ClusterRoute[]) => new Set(clusters.map(({ name }) => name)));

/** @param clusters those of the routes that are enforced now; undefined: none is divided */
export function createEgressMetrics(registry: Registry, clusters: () => readonly ClusterRoute[] | undefined) {
  const registers = [registry];
  const results = new Map<string, Set<EgressResult>>();
  const openNow = new Map<string, number>([[NO_CLUSTER, 0]]);
  const labelOf = (cluster: string) => (namesOf(clusters() ?? NONE).has(cluster) ? cluster : NO_CLUSTER);
  const total = new Counter({
    name: "ctrlmesh_proxy_egress_total",
    help: "Requests to other servers, by what came of them and by the cluster that the server belongs to.",
    labelNames: ["cluster", "result"],
    registers,
    collect: () => forgetClusters(),
  });
  const forgetClusters = () => {
    for (const [cluster, seen] of results) {
      if (labelOf(cluster) === cluster) continue;
      for (const result of seen) total.remove({ cluster, result });
      results.delete(cluster);
    }
  };
  new Gauge({
    name: "ctrlmesh_proxy_egress_open",
    help: "Tunnels and requests to other servers that are open now, by cluster.",
    labelNames: ["cluster"],
    registers,
    collect() {
      this.reset();
      for (const [cluster, count] of openNow) this.inc({ cluster: labelOf(cluster) }, count);
    },
  });
  return {
    decided(result: EgressResult, name: string): void {
      const cluster = labelOf(name);
      // Also without scrapes, the series are at most those of two sets of routes.
      if (!results.has(cluster)) forgetClusters();
      results.set(cluster, (results.get(cluster) ?? new Set()).add(result));
      total.inc({ cluster, result });
    },
    open(change: 1 | -1, cluster: string): void {
      const count = (openNow.get(cluster) ?? 0) + change;
      if (count > 0 || cluster === NO_CLUSTER) openNow.set(cluster, count);
      else openNow.delete(cluster);
    },
  };
}

const NONE: readonly ClusterRoute[] = [];
