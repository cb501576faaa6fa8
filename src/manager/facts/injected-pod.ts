// The names by which a pod shows that it carries the proxy. The injection writes them; admission of proxies and the plan read them.
import type { Pod } from "../../kube/client/resources.ts";

/** Label of the pods that carry the proxy; its value is the app's name. */
export const INJECTED_LABEL = "ctrlmesh.kruise.io/virtual-app-injected";

/** The proxy's container: an init container with restartPolicy Always, or a plain one where there are no native sidecars. */
export const PROXY_CONTAINER = "ctrlmesh-proxy";

/** True if the proxy's container is in it. Labels can be put on any pod and taken off a running one; containers stay as they were made. */
export function carriesProxy({ spec }: Pod): boolean {
  return [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].some(({ name }) => name === PROXY_CONTAINER);
}
