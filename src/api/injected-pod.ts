// The names that show that a pod has the proxy, or that a namespace has such pods.
import type { Pod } from "../kube/client/resources.ts";

/** Label of the pods with a proxy. Its value is the app's name. */
export const INJECTED_LABEL = "ctrlmesh.kruise.io/virtual-app-injected";

/** The ConfigMap with the mesh's CA, in the namespaces of apps. */
export const CA_CONFIG_MAP = "ctrlmesh-ca";

/** A native sidecar (an init container with restartPolicy Always); in old clusters a container. */
export const PROXY_CONTAINER = "ctrlmesh-proxy";

/** Of the proxy: /healthz, /readyz, /metrics, and from inside the pod /debug. */
export const HEALTH_PORT = 5441;

/** True if the pod has the proxy's container. Users can change labels of a pod, but not containers. */
export function carriesProxy({ spec }: Pod): boolean {
  return [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].some(({ name }) => name === PROXY_CONTAINER);
}

export const IPTABLES_CONTAINER = "ctrlmesh-iptables";

/** True if its connections to the API server are redirected. Few users may create NET_ADMIN containers. */
export function isRedirected({ spec }: Pod): boolean {
  const container = spec?.initContainers?.find(({ name }) => name === IPTABLES_CONTAINER);
  return container?.securityContext?.capabilities?.add?.includes("NET_ADMIN") ?? false;
}

/** The proxy's port for the operator's requests to API servers, on the loopback. */
export const API_PORT = 5443;

/** The proxy's setting with its address for requests to other servers than the API server. */
export const EGRESS_LISTEN_ENV = "CTRLMESH_EGRESS_LISTEN";

/** The proxy's setting with its address for the calls of the operator's webhooks. */
export const WEBHOOK_LISTEN_ENV = "CTRLMESH_WEBHOOK_LISTEN";

export function hasEgress(pod: Pod): boolean {
  return hasSetting(pod, EGRESS_LISTEN_ENV);
}

export function takesReviews(pod: Pod): boolean {
  return hasSetting(pod, WEBHOOK_LISTEN_ENV);
}

function hasSetting({ spec }: Pod, variable: string): boolean {
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  const proxy = containers.find(({ name }) => name === PROXY_CONTAINER);
  return proxy?.env?.some(({ name }) => name === variable) ?? false;
}
