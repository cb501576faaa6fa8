// The names that show that a pod has the proxy, or that a namespace has such pods. Injection and trust write
// them. Admission, identity and the plan read them.
import type { Pod } from "../../kube/client/resources.ts";

/** Label of the pods with a proxy. Its value is the app's name. */
export const INJECTED_LABEL = "ctrlmesh.kruise.io/virtual-app-injected";

/** The ConfigMap with the mesh's CA, which the manager maintains in the namespaces of apps. */
export const CA_CONFIG_MAP = "ctrlmesh-ca";

/**
 * The proxy's container: a native sidecar (an init container with restartPolicy Always), or an ordinary
 * container in old clusters.
 */
export const PROXY_CONTAINER = "ctrlmesh-proxy";

/**
 * True if the pod has the proxy's container. Users can change the labels of a pod, but not its containers.
 */
export function carriesProxy({ spec }: Pod): boolean {
  return [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].some(({ name }) => name === PROXY_CONTAINER);
}

/** The init container of iptables mode. */
export const IPTABLES_CONTAINER = "ctrlmesh-iptables";

/**
 * True if the pod's connections to the API server are redirected. Only a container with NET_ADMIN can
 * redirect them, and few users may create one. So its name alone is not enough.
 */
export function isRedirected({ spec }: Pod): boolean {
  const container = spec?.initContainers?.find(({ name }) => name === IPTABLES_CONTAINER);
  return container?.securityContext?.capabilities?.add?.includes("NET_ADMIN") ?? false;
}

/** The proxy's setting with the address at which it takes requests to other servers than the API server. */
export const EGRESS_LISTEN_ENV = "CTRLMESH_EGRESS_LISTEN";

/** The proxy's setting with the address at which it takes the calls of the operator's webhooks. */
export const WEBHOOK_LISTEN_ENV = "CTRLMESH_WEBHOOK_LISTEN";

/** True if the pod's proxy takes requests to other servers. */
export function hasEgress(pod: Pod): boolean {
  return hasSetting(pod, EGRESS_LISTEN_ENV);
}

/** True if the pod's proxy takes the calls of the operator's webhooks. */
export function takesReviews(pod: Pod): boolean {
  return hasSetting(pod, WEBHOOK_LISTEN_ENV);
}

function hasSetting({ spec }: Pod, variable: string): boolean {
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  const proxy = containers.find(({ name }) => name === PROXY_CONTAINER);
  return proxy?.env?.some(({ name }) => name === variable) ?? false;
}
