// The pods of one app as facts. Pure. Invariant: a pod counts as running unless its operator certainly does
// not run, because a running operator may write. A pod with a proxy that may still write stays in the facts
// of an app, even if its labels change.

import { carriesProxy, INJECTED_LABEL, PROXY_CONTAINER } from "../../api/injected-pod.ts";
import { controllerRefOf } from "../../kube/client/owner.ts";
import type { Condition, ContainerStatus, Pod } from "../../kube/client/resources.ts";
import { type Labels, matchesSelector } from "../../kube/label-selector.ts";
import type { AppPod } from "../../mesh/handover/app-pod.ts";
import { type FactsOf, type PodKey, type ProxyFacts, podKey, snapshotsIn } from "../../mesh/handover/proxy-facts.ts";
import type { Apps, PodSelection } from "../apps/app.ts";

/** Facts about pods that their objects do not contain. */
export interface PodView {
  isApp(name: string): boolean;
  /** The apps whose routes its proxy may enforce; undefined if it has not registered to this manager. */
  appsOf(pod: PodKey): readonly string[] | undefined;
  /** An earlier leader may have served its proxy so recently that the pod's status does not show it yet. */
  isStatusLate(pod: Pod): boolean;
  mayHaveEarlierRoutes(pod: Pod): boolean;
}

const OBJECTS_ALONE: PodView = {
  isApp: () => true,
  appsOf: () => undefined,
  isStatusLate: () => false,
  mayHaveEarlierRoutes: () => false,
};

/**
 * True if the pod may belong to the app: it is injected for the app, the app selects it, or its proxy
 * may enforce the app's routes. It also may if its proxy is of no known app and its operator may run. In doubt the answer is
 * true, since it is safe to count another app's pod, but not to miss one.
 */
export function isPodOf(app: PodSelection, pod: Pod, view = OBJECTS_ALONE): boolean {
  const { namespace = "", name = "", labels } = pod.metadata;
  const injected = labels?.[INJECTED_LABEL];
  if (injected === app.name || app.selects(labels)) return true;
  const apps = view.appsOf(podKey({ namespace, name })) ?? [];
  if (apps.length > 0 || !carriesProxy(pod)) return apps.includes(app.name);
  return injected === undefined || (!view.isApp(injected) && !hasEnded(pod) && mayBeAtWork(pod, view));
}

export function appPods(app: PodSelection, pods: readonly Pod[], view = OBJECTS_ALONE): AppPod[] {
  return pods
    .filter((pod) => isPodOf(app, pod, view))
    .map((pod) => appPod(app, pod, view))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function appPod(app: PodSelection, pod: Pod, view: PodView): AppPod {
  const { metadata } = pod;
  const labels = metadata.labels ?? {};
  const proxy = proxyOf(app.name, pod);
  const ended = hasEnded(pod);
  return {
    namespace: metadata.namespace ?? "",
    name: metadata.name ?? "",
    uid: metadata.uid ?? "",
    subset: app.subsetOf(labels),
    proxy,
    injectedFor: proxy === "other-app" ? labels[INJECTED_LABEL] : undefined,
    running: !ended && mayBeAtWork(pod, view),
    ...(isUnstarted(pod) ? { unstarted: true } : {}),
    ended,
    ready: !ended && readyCondition(pod) !== undefined,
    ...(hasNeverRun(pod) ? { neverRanSinceMs: Date.parse(metadata.creationTimestamp ?? "") || 0 } : {}),
    terminating: metadata.deletionTimestamp !== undefined,
    ...leftNodeOf(pod),
    controlled: controllerRefOf(pod) !== undefined,
    ...(isMismatched(app, labels) ? { mismatched: true } : {}),
  };
}

/** The taint eviction controller deletes the pods of a node that does not answer, after 5 min by default. */
function leftNodeOf({ metadata, spec, status }: Pod): Pick<AppPod, "leftNode"> {
  const isEvicted = status?.conditions?.some(({ reason }) => reason === "DeletionByTaintManager") === true;
  const { nodeName = "" } = spec ?? {};
  return metadata.deletionTimestamp !== undefined && isEvicted && nodeName !== "" ? { leftNode: nodeName } : {};
}

function isMismatched({ checkedSelector, selects }: PodSelection, labels: Labels): boolean {
  return checkedSelector !== undefined && selects(labels) && !matchesSelector(checkedSelector, labels);
}

/** The phase is not enough: a pod can be Pending although some of its containers run. */
function mayBeAtWork(pod: Pod, view: PodView): boolean {
  const { spec, status } = pod;
  // A restarted proxy starts with the routes on its disk. This manager knows the routes that it has sent, so
  // only an earlier leader can have sent others.
  if (isUnstarted(pod)) return view.mayHaveEarlierRoutes(pod);
  const [started, inits] = [status?.containerStatuses ?? [], status?.initContainerStatuses ?? []];
  if (started.some((each) => each.name !== PROXY_CONTAINER && hasEverRun(each))) return true;
  const sidecar = [...inits, ...started].find(({ name }) => name === PROXY_CONTAINER);
  if (sidecar !== undefined ? !hasNeverServed(sidecar) : (status?.phase ?? "Pending") !== "Pending") return true;
  // A kubelet reports a start only after it happened, so a pod on a node may run more than its status says.
  // An operator with a proxy waits for the proxy's first snapshot.
  const isMeshed = pod.metadata.labels?.[INJECTED_LABEL] !== undefined || carriesProxy(pod);
  return (spec?.nodeName ?? "") !== "" && (!isMeshed || view.isStatusLate(pod));
}

/** See AppPod.unstarted. */
function isUnstarted({ status }: Pod): boolean {
  const inits = status?.initContainerStatuses ?? [];
  const at = inits.findIndex(({ name }) => name === PROXY_CONTAINER);
  const sidecar = inits[at];
  const apps = status?.containerStatuses ?? [];
  if (sidecar === undefined || sidecar.started === true || hasNeverServed(sidecar) || apps.length === 0) return false;
  return ![...inits.slice(at + 1), ...apps].some(hasEverRun);
}

/** False if the pod's proxy has certainly never run. A kubelet reports a start only after it happened. */
export function mayProxyHaveRun({ spec, status }: Pod): boolean {
  if ((spec?.nodeName ?? "") === "") return false;
  const containers = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const proxy = containers.find(({ name }) => name === PROXY_CONTAINER);
  return proxy === undefined || hasEverRun(proxy);
}

/**
 * True if a kubelet has reported that the containers have ended for good. The phase alone does not prove
 * that: pod garbage collection writes Failed for a pod on a lost node, just before it removes the object.
 */
export function hasEnded({ metadata, status }: Pod): boolean {
  const states = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].map(({ state }) => state);
  if (states.some((state) => state?.running !== undefined)) return false;
  if (status?.phase === "Succeeded" || status?.phase === "Failed") return true;
  return (
    metadata.deletionTimestamp !== undefined && states.length > 0 && states.every((state) => state?.terminated !== undefined)
  );
}

// For waits only: a container may have started that no kubelet has reported yet.
function hasNeverRun(pod: Pod): boolean {
  const { initContainerStatuses: inits = [], containerStatuses: apps = [] } = pod.status ?? {};
  const isStarted = [...inits, ...apps].some((each) => each.name !== PROXY_CONTAINER && hasEverRun(each));
  return !isStarted && readyCondition(pod) === undefined && !hasEnded(pod);
}

// Labels can be removed from a running pod. Its containers stay.
function proxyOf(appName: string, pod: Pod): AppPod["proxy"] {
  const injected = pod.metadata.labels?.[INJECTED_LABEL];
  if (injected === appName) return "own";
  return injected === undefined && !carriesProxy(pod) ? "none" : "other-app";
}

function hasEverRun({ restartCount, state, lastState }: ContainerStatus): boolean {
  return restartCount > 0 || [state, lastState].some((each) => each?.running !== undefined || each?.terminated !== undefined);
}

// The startup probe passes only with a snapshot, and a container that has ended may have passed it before.
function hasNeverServed({ started, restartCount, state, lastState }: ContainerStatus): boolean {
  return started !== true && restartCount === 0 && state?.terminated === undefined && lastState?.terminated === undefined;
}

interface PodViewSources {
  readonly apps: Pick<Apps, "get">;
  readonly factsOf: FactsOf;
  readonly past: Pick<PodView, "isStatusLate" | "mayHaveEarlierRoutes">;
}

export function podViewIn(namespace: string, { apps, factsOf, past }: PodViewSources): PodView {
  return {
    isApp: (name) => apps.get(name, namespace) !== undefined,
    appsOf: (pod) => appsIn(factsOf(pod)),
    isStatusLate: past.isStatusLate,
    mayHaveEarlierRoutes: past.mayHaveEarlierRoutes,
  };
}

/** The apps whose routes a proxy may enforce, all of its own namespace; undefined if not all are known. */
export function appsIn(facts: ProxyFacts | undefined): readonly string[] | undefined {
  return facts === undefined || facts.mayHoldMore ? undefined : snapshotsIn(facts).map(({ app }) => app.name);
}

export function readyCondition({ status }: Pod): Condition | undefined {
  return status?.conditions?.find(({ type, status: is }) => type === "Ready" && is === "True");
}

/** The scheduler has found no node for it. */
export function isUnschedulable({ spec, status }: Pod): boolean {
  const isRefused = status?.conditions?.some(({ type, status: is }) => type === "PodScheduled" && is === "False") ?? false;
  return isRefused && (spec?.nodeName ?? "") === "";
}

export function isReadyToStay(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp === undefined && readyCondition(pod) !== undefined;
}
