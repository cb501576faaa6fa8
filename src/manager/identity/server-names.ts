// The names in certificates. Pure; add.ts and certifier.ts call it. Invariant: unless the user adds such a
// name (ManagerNames.more), no manager's certificate is valid for the API server; no proxy's is valid for the
// manager.
import { isIP } from "node:net";

export interface ServerNames {
  readonly commonName: string;
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
}

export interface ManagerNames {
  readonly namespace: string;
  /** Of the Service. */
  readonly serviceName: string;
  readonly clusterDomain: string;
  /** Further names and addresses of the manager: of a load balancer, or without a Service. */
  readonly more: readonly string[];
}

/** The names of the manager's servers. */
export function managerNames({ namespace, serviceName, clusterDomain, more }: ManagerNames): ServerNames {
  const service = `${serviceName}.${namespace}.svc`;
  return {
    commonName: "ctrlmesh-manager",
    dnsNames: [service, `${service}.${clusterDomain}`, ...more.filter((name) => isIP(name) === 0)],
    ipAddresses: more.filter((name) => isIP(name) !== 0),
  };
}

/**
 * The names of a proxy: all by which an operator in its pod may know the API server.
 * @param clusterIPs of the Service `default/kubernetes`, if the pod's connections to them are redirected to
 * the proxy (iptables mode); else none
 */
export function proxyNames(clusterDomain: string, clusterIPs: readonly string[]): ServerNames {
  const api = "kubernetes.default.svc";
  // Operators may have the usual domain built in, in any cluster.
  const domains = [...new Set(["cluster.local", clusterDomain])];
  return {
    commonName: "ctrlmesh-proxy",
    dnsNames: ["localhost", "kubernetes", "kubernetes.default", api, ...domains.map((domain) => `${api}.${domain}`)],
    ipAddresses: [...new Set(["127.0.0.1", "::1", ...clusterIPs.filter((address) => isIP(address) !== 0)])],
  };
}
