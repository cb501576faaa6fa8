// What is counted of the proxy's identity.
import { Counter, type Registry } from "../../base/metrics.ts";

export interface IdentityMetrics {
  /** The manager was asked for a certificate. */
  asked(result: "issued" | "refused" | "failed"): void;
}

export function createIdentityMetrics(registry: Registry): IdentityMetrics {
  const requests = new Counter({
    name: "ctrlmesh_proxy_certificate_requests_total",
    help: "Requests to the manager for a serving certificate: issued, refused (who we are is not believed), or failed.",
    labelNames: ["result"],
    registers: [registry],
  });
  return { asked: (result) => requests.inc({ result }) };
}
