// Metrics of the egress proxy. Invariant: each request counts once, with one of a fixed set of results.
import { Counter, Gauge, type Registry } from "prom-client";
import type { EgressResult } from "./egress-error.ts";

export interface EgressMetrics {
  decided(result: EgressResult): void;
  /** Tunnels and exchanges that are open now. */
  open(change: 1 | -1): void;
}

export function createEgressMetrics(registry: Registry): EgressMetrics {
  const registers = [registry];
  const total = new Counter({
    name: "ctrlmesh_proxy_egress_total",
    help: "Requests to other servers, by what came of them.",
    labelNames: ["result"],
    registers,
  });
  const open = new Gauge({
    name: "ctrlmesh_proxy_egress_open",
    help: "Tunnels and requests to other servers that are open now.",
    registers,
  });
  return {
    decided: (result) => total.inc({ result }),
    open: (change) => open.inc(change),
  };
}
