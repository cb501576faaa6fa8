// The pods of one app as facts. Pure. Invariant: a pod counts as running unless its operator certainly does not run, because a
// running operator may write. A pod with a proxy that may still write stays in the facts of an app, whatever happens to its labels.
import type { ContainerStatus, Pod } from "../../kube/client/resources.ts";
import { matchesSelector } from "../../kube/label-selector.ts";
import type { Apps, PodSelection } from "../sources/app.ts";
import { carriesProxy, INJECTED_LABEL, PROXY_CONTAINER } from "./injected-pod.ts";
import { type PodKey, podKey } from "./pod-key.ts";
import type { FactsOf, ProxyFacts } from "./proxy-facts.ts";

export interface AppPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly subset: string;
  /** The pod carries the proxy of this app, a proxy of another or an unknown app, or no proxy. */
  readonly proxy: "own" | "other-app" | "none";
  /** The app that its label names, if the proxy is foreign and there is such a label. */
  readonly injectedFor?: string;
  /** The operator in it may be at work. */
  readonly running: boolean;
  /** According to its status, the proxy (a native sidecar) has ended or was restarted, and no container that starts after it has ever started. */
  readonly unstarted?: true;
  /** It has ended for good, and only its object lingers. */
  readonly ended: boolean;
  readonly ready: boolean;
  /** It has been asked to end. */
  readonly terminating: boolean;
  /** A controller (a Deployment's ReplicaSet, a StatefulSet ...) makes another one when it is gone. */
  readonly controlled: boolean;
}

/** What is known of pods beside their objects. */
export interface PodView {
  /** There is an app of that name in their namespace. */
  isApp(name: string): boolean;
  /** The names of the apps whose routes the pod's proxy may enforce; undefined if the proxy has not registered to this manager. */
  appsOf(pod: PodKey): readonly string[] | undefined;
  /** An older leader may have served its proxy so recently that the pod's status does not say so yet. */
  isStatusLate(pod: Pod): boolean;
  /** An earlier leader may have sent routes to its proxy. */
  mayHaveEarlierRoutes(pod: Pod): boolean;
}

const OBJECTS_ALONE: PodView = {
  isApp: () => true,
  appsOf: () => undefined,
  isStatusLate: () => false,
  mayHaveEarlierRoutes: () => false,
};

/**
 * True if the pod may belong to the app: it is injected for the app, the app selects it, its proxy may enforce the app's routes, it has a
 * proxy that nothing assigns to an app, or the app that its label names does not exist and its operator may run. In doubt the answer is
 * true: counting another app's pod is safe, missing one is not.
 */
export function isPodOf(app: PodSelection, pod: Pod, view = OBJECTS_ALONE): boolean {
  const { namespace = "", name = "", labels } = pod.metadata;
  const injected = labels?.[INJECTED_LABEL];
  if (injected === app.name || matchesSelector(app.selector, labels)) return true;
  const apps = view.appsOf(podKey({ namespace, name })) ?? [];
  if (apps.length > 0 || !carriesProxy(pod)) return apps.includes(app.name);
  return injected === undefined || (!view.isApp(injected) && !hasEnded(pod) && mayBeAtWork(pod, view));
}

/** The app's pods, by name. */
export function appPods(app: PodSelection, pods: readonly Pod[], view = OBJECTS_ALONE): AppPod[] {
  return pods
    .filter((pod) => isPodOf(app, pod, view))
    .map((pod) => appPod(app, pod, view))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function appPod(app: PodSelection, pod: Pod, view: PodView): AppPod {
  const { metadata, status } = pod;
  const labels = metadata.labels ?? {};
  const proxy = proxyOf(app.name, pod);
  const ended = hasEnded(pod);
  const injectedFor = proxy === "other-app" ? labels[INJECTED_LABEL] : undefined;
  return {
    namespace: metadata.namespace ?? "",
    name: metadata.name ?? "",
    uid: metadata.uid ?? "",
    subset: app.subsetOf(labels),
    proxy,
    ...(injectedFor === undefined ? {} : { injectedFor }),
    running: !ended && mayBeAtWork(pod, view),
    ...(isUnstarted(pod) ? { unstarted: true } : {}),
    ended,
    ready: !ended && (status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ?? false),
    terminating: metadata.deletionTimestamp !== undefined,
    controlled: metadata.ownerReferences?.some(({ controller }) => controller === true) ?? false,
  };
}

/**
 * The phase says little: a pod can be Pending although some of its containers run.
 * The operator starts when the sidecar has a snapshot.
 */
function mayBeAtWork(pod: Pod, view: PodView): boolean {
  const { spec, status } = pod;
  // A restarted proxy starts with the routes on its disk. This manager knows the routes that it has sent, so only an earlier leader can
  // have sent others.
  if (isUnstarted(pod)) return view.mayHaveEarlierRoutes(pod);
  const [started, inits] = [status?.containerStatuses ?? [], status?.initContainerStatuses ?? []];
  if (started.some((each) => each.name !== PROXY_CONTAINER && hasEverRun(each))) return true;
  const sidecar = [...inits, ...started].find(({ name }) => name === PROXY_CONTAINER);
  if (sidecar !== undefined ? !hasNeverServed(sidecar) : (status?.phase ?? "Pending") !== "Pending") return true;
  // A kubelet reports a start only after it happened, so a pod on a node may run more than its status says. Without a proxy its operator
  // may already write. With a proxy the operator waits for the proxy's first snapshot.
  const isMeshed = pod.metadata.labels?.[INJECTED_LABEL] !== undefined || carriesProxy(pod);
  return (spec?.nodeName ?? "") !== "" && (!isMeshed || view.isStatusLate(pod));
}

/** True if its proxy is a native sidecar that has ended or was restarted, and none of the containers that start after the sidecar has ever started. */
function isUnstarted({ status }: Pod): boolean {
  const inits = status?.initContainerStatuses ?? [];
  const at = inits.findIndex(({ name }) => name === PROXY_CONTAINER);
  const sidecar = inits[at];
  const apps = status?.containerStatuses ?? [];
  if (sidecar === undefined || sidecar.started === true || hasNeverServed(sidecar) || apps.length === 0) return false;
  return ![...inits.slice(at + 1), ...apps].some(hasEverRun);
}

/**
 * True if a kubelet has said that the pod's containers have ended and will not be started again. The phase alone does not say so:
 * the garbage collection of pods writes Failed for one on a lost node, just before it removes the object.
 */
export function hasEnded({ metadata, status }: Pod): boolean {
  const states = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].map(({ state }) => state);
  if (states.some((state) => state?.running !== undefined)) return false;
  if (status?.phase === "Succeeded" || status?.phase === "Failed") return true;
  return (
    metadata.deletionTimestamp !== undefined && states.length > 0 && states.every((state) => state?.terminated !== undefined)
  );
}

// Labels can be taken off a running pod; its containers stay.
function proxyOf(appName: string, pod: Pod): AppPod["proxy"] {
  const injected = pod.metadata.labels?.[INJECTED_LABEL];
  if (injected === appName) return "own";
  return injected === undefined && !carriesProxy(pod) ? "none" : "other-app";
}

function hasEverRun({ restartCount, state, lastState }: ContainerStatus): boolean {
  return restartCount > 0 || [state, lastState].some((each) => each?.running !== undefined || each?.terminated !== undefined);
}

// The startup probe passes only with a snapshot. A container that has ended or was restarted may have passed it before.
function hasNeverServed({ started, restartCount, state, lastState }: ContainerStatus): boolean {
  return started !== true && restartCount === 0 && state?.terminated === undefined && lastState?.terminated === undefined;
}

interface PodViewSources {
  /** Of all source kinds. */
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

/** The names of the apps whose routes a proxy may enforce; undefined if not all is known. A proxy has routes of its own namespace alone. */
export function appsIn(facts: ProxyFacts | undefined): readonly string[] | undefined {
  if (facts === undefined || facts.mayHoldMore) return undefined;
  return [facts.acknowledged, ...facts.inDoubt, facts.outstanding].flatMap((snapshot) => snapshot?.app.name ?? []);
}
