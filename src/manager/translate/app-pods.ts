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
  /** Whose proxy the pod carries: this app's, that of another app which selects it too, or none. */
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

/** True if the pod is the app's: injected for it, or selected by it. An app may be told of pods that are another one's. */
export function isPodOf(
  app: { readonly name: string; readonly spec: Pick<VirtualAppSpec, "selector"> },
  { metadata }: Pod,
): boolean {
  return metadata.labels?.[INJECTED_LABEL] === app.name || matchesSelector(app.spec.selector ?? {}, metadata.labels);
}

/** The app's pods, by name. */
export function appPods(app: { readonly name: string; readonly spec: VirtualAppSpec }, pods: readonly Pod[]): AppPod[] {
  return pods
    .filter((pod) => isPodOf(app, pod))
    .map((pod) => appPod(app, pod))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function appPod(app: { readonly name: string; readonly spec: VirtualAppSpec }, { metadata, status }: Pod): AppPod {
  const labels = metadata.labels ?? {};
  const injected = labels[INJECTED_LABEL];
  const container = status?.initContainerStatuses?.find(({ name }) => name === PROXY_CONTAINER);
  const isPending = status?.phase === undefined || status.phase === "Pending";
  const ended = status?.phase === "Succeeded" || status?.phase === "Failed";
  return {
    namespace: metadata.namespace ?? "",
    name: metadata.name ?? "",
    subset: subsetOfPod(app.spec, labels),
    proxy: injected === undefined ? "none" : injected === app.name ? "own" : "foreign",
    // A pod is Pending while its native sidecar already runs; the operator starts when the sidecar has a snapshot.
    running: !ended && (isPending ? container?.started === true : container === undefined || !hasNeverServed(container)),
    ended,
    ready: !ended && (status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ?? false),
  };
}

// The startup probe passes only with a snapshot. A container that has ended or was restarted may have passed it before.
function hasNeverServed({ started, restartCount, state, lastState }: ContainerStatus): boolean {
  return started !== true && restartCount === 0 && state?.terminated === undefined && lastState?.terminated === undefined;
}
