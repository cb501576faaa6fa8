// The names, paths and ports that injection writes into pods.
import { IPTABLES_CONTAINER, PROXY_CONTAINER } from "../../api/injected-pod.ts";

export function isOurs({ name }: { readonly name: string }): boolean {
  return name === IPTABLES_CONTAINER || name === PROXY_CONTAINER;
}

/** Kubernetes' own ConfigMap with the CA of the API server, in every namespace. */
export const CLUSTER_CA_CONFIG_MAP = "kube-root-ca.crt";

export const IDENTITY_VOLUME = "ctrlmesh-identity";
export const DATA_VOLUME = "ctrlmesh-data";
export const CLUSTER_CA_VOLUME = "ctrlmesh-cluster-ca";
export const KUBECONFIG_VOLUME = "ctrlmesh-kubeconfig";

export const IDENTITY_DIR = "/var/run/ctrlmesh/identity";
export const DATA_DIR = "/var/lib/ctrlmesh";
export const KUBECONFIG_DIR = "/var/run/ctrlmesh/kubeconfig";
/** Where client libraries read the service account. Admission mounts it there if nothing else is mounted. */
export const SERVICE_ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount";

export const PROXY_UID = 1359;
export const WEBHOOK_PORT = 5445;
export const WEBHOOK_PORT_ENV = "CTRLMESH_WEBHOOK_PORT";
export const WEBHOOK_CERT_DIR_ENV = "CTRLMESH_WEBHOOK_CERT_DIR";
/** The operator's volume with the certificate of its webhook server, in the proxy's container. */
export const WEBHOOK_CERT_MOUNT = "/var/run/ctrlmesh/webhook";
/** The forward proxy for requests to other servers, on the loopback. */
export const EGRESS_PORT = 15002;

/** The port that operators use if they have the name of the Service `kubernetes` built in. */
export const ALIAS_PORT = 443;
