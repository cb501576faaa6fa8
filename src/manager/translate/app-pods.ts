// The pods of one app as facts. Pure. Invariant: a pod counts as running unless it is certain that its operator is not, since
// what runs may write.
import type { VirtualAppSpec } from "../../api/virtual-app.ts";
import type { Pod } from "../../kube/client/resources.ts";
import { matchesSelector } from "../../kube/label-selector.ts";
import { subsetOfPod } from "./subsets.ts";

/** Label of the pods that carry the proxy; its value is the VirtualApp's name. */
export const INJECTED_LABEL = "ctrlmesh.kruise.io/virtual-app-injected";

/** Name of the proxy's container. */
export const PROXY_CONTAINER = "ctrlmesh-proxy";

export interface AppPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly subset: string;
  /** The pod carries this app's proxy. */
  readonly meshed: boolean;
  /** The operator in it may be at work. */
  readonly running: boolean;
  readonly ready: boolean;
}

/** "namespace/name", as in the registry. */
export function podKey({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}

/** The pods that the app selects, by name. A pod that was injected for another app is that app's. */
export function appPods(app: { readonly name: string; readonly spec: VirtualAppSpec }, pods: readonly Pod[]): AppPod[] {
  return pods
    .filter(({ metadata }) => {
      const injected = metadata.labels?.[INJECTED_LABEL];
      return matchesSelector(app.spec.selector, metadata.labels) && (injected === undefined || injected === app.name);
    })
    .map((pod) => appPod(app.spec, pod))
    .filter(({ name }) => name !== "")
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function appPod(spec: VirtualAppSpec, { metadata, status }: Pod): AppPod {
  const labels = metadata.labels ?? {};
  const meshed = Object.hasOwn(labels, INJECTED_LABEL);
  const proxy = status?.initContainerStatuses?.find(({ name }) => name === PROXY_CONTAINER);
  const proxyNeverServed = meshed && proxy !== undefined && proxy.started !== true && proxy.restartCount === 0;
  return {
    namespace: metadata.namespace ?? "",
    name: metadata.name ?? "",
    uid: metadata.uid ?? "",
    subset: subsetOfPod(spec, labels),
    meshed,
    running: (status?.phase === "Running" || status?.phase === "Unknown") && !proxyNeverServed,
    ready: status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ?? false,
  };
}
