// Metrics of the egress proxy.
import { Counter, Gauge, type Registry } from "prom-client";
import type { EgressResult } from "./egress-error.ts";

export type EgressMetrics = ReturnType<typeof createEgressMetrics>;

export function createEgressMetrics(registry: Registry) {
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
    decided: (result: EgressResult) => total.inc({ result }),
    open: (change: 1 | -1) => open.inc(change),
  };
}
