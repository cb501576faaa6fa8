// The names in certificates. Pure. Invariant: unless the user adds such a name (ManagerNames.more), no
// manager's certificate is valid for the API server; no proxy's is valid for the manager.
import { isIP } from "node:net";

export interface ServerNames {
  readonly commonName: string;
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
}

export interface ManagerNames {
  /** The namespace of the manager, its Service and its Secrets. */
  readonly namespace: string;
  readonly serviceName: string;
  readonly clusterDomain: string;
  /** Further names and addresses of the manager, such as those of a load balancer. */
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
 * The names of a proxy: all names by which an operator in its pod may know the API server.
 * @param clusterIPs the addresses of the Service `default/kubernetes` if the pod's connections to them are
 * redirected to the proxy (iptables mode); otherwise none
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
