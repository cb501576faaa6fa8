// The pods of one app as facts. Pure. Invariant: a pod counts as running unless it is certain that its operator is not, since
// what runs may write; and a pod leaves the facts only with its object, whatever happens to its labels.
import type { VirtualAppSpec } from "../../api/virtual-app.ts";
import type { ContainerStatus, Pod } from "../../kube/client/resources.ts";
import { matchesSelector } from "../../kube/label-selector.ts";
import { subsetOfPod } from "./subsets.ts";

/** Label of the pods that carry the proxy; its value is the VirtualApp's name. */
export const INJECTED_LABEL = "ctrlmesh.kruise.io/virtual-app-injected";

const PROXY_CONTAINER = "ctrlmesh-proxy";

export interface AppPod {
  readonly namespace: string;
  readonly name: string;
  readonly subset: string;
  /** Whose proxy the pod carries: this app's, another one's or nobody knows whose, or none. */
  readonly proxy: "own" | "foreign" | "none";
  /** The operator in it may be at work. */
  readonly running: boolean;
  /** It has ended for good, and only its object lingers. */
  readonly ended: boolean;
  readonly ready: boolean;
}

/** "namespace/name", as in the registry. */
export function podKey({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}

/**
 * True if the pod may be the app's: injected for it, selected by it, or with a proxy of which no label says whose it is. An app
 * is told of pods that are another one's rather than not of its own.
 */
export function isPodOf(app: { readonly name: string; readonly spec: Pick<VirtualAppSpec, "selector"> }, pod: Pod): boolean {
  const injected = pod.metadata.labels?.[INJECTED_LABEL];
  if (injected === app.name || (injected === undefined && carriesProxy(pod))) return true;
  return matchesSelector(app.spec.selector ?? {}, pod.metadata.labels);
}

/** The app's pods, by name. */
export function appPods(app: { readonly name: string; readonly spec: VirtualAppSpec }, pods: readonly Pod[]): AppPod[] {
  return pods
    .filter((pod) => isPodOf(app, pod))
    .map((pod) => appPod(app, pod))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function appPod(app: { readonly name: string; readonly spec: VirtualAppSpec }, pod: Pod): AppPod {
  const { metadata, status } = pod;
  const labels = metadata.labels ?? {};
  const container = status?.initContainerStatuses?.find(({ name }) => name === PROXY_CONTAINER);
  const isPending = status?.phase === undefined || status.phase === "Pending";
  const ended = status?.phase === "Succeeded" || status?.phase === "Failed";
  return {
    namespace: metadata.namespace ?? "",
    name: metadata.name ?? "",
    subset: subsetOfPod(app.spec, labels),
    proxy: proxyOf(app.name, pod),
    // A pod is Pending while its native sidecar already runs; the operator starts when the sidecar has a snapshot.
    running: !ended && (isPending ? container?.started === true : container === undefined || !hasNeverServed(container)),
    ended,
    ready: !ended && (status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ?? false),
  };
}

// Labels can be taken off a running pod; its containers stay.
function proxyOf(appName: string, pod: Pod): AppPod["proxy"] {
  const injected = pod.metadata.labels?.[INJECTED_LABEL];
  if (injected === appName) return "own";
  return injected === undefined && !carriesProxy(pod) ? "none" : "foreign";
}

function carriesProxy({ spec }: Pod): boolean {
  return spec?.initContainers?.some(({ name }) => name === PROXY_CONTAINER) ?? false;
}

// The startup probe passes only with a snapshot. A container that has ended or was restarted may have passed it before.
function hasNeverServed({ started, restartCount, state, lastState }: ContainerStatus): boolean {
  return started !== true && restartCount === 0 && state?.terminated === undefined && lastState?.terminated === undefined;
}
