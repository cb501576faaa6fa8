// Computes a pod's status from the states of its containers, like the kubelet. Pure. It has no conditions of other writers
// (PodScheduled, readiness gates, DisruptionTarget); the caller merges by type.
import type { Condition } from "../../src/kube/client/resources.ts";
import { type Container, type ContainerStatus, isSidecar, type NodePod, type PodStatus } from "./pod-types.ts";

export interface PodFacts {
  readonly statuses: ReadonlyMap<string, ContainerStatus>;
  readonly podIP: string;
  readonly hostIP: string;
  readonly startTime: string;
  /** True if the pod is being deleted. */
  readonly isEnding: boolean;
}

/** The status that the node writes. `now` is the transition time of changed conditions. */
export function podStatus(pod: NodePod, facts: PodFacts, now: string): PodStatus {
  const { initContainers = [], containers, readinessGates = [] } = pod.spec;
  const of = ({ name, image }: Container): ContainerStatus =>
    facts.statuses.get(name) ?? notCreated(name, image, initContainers.length > 0);
  const apps = containers.map(of);
  const inits = initContainers.map(of);
  const phase = phaseOf(pod, facts);
  const isOver = phase === "Succeeded" || phase === "Failed";
  const needed = [...apps, ...initContainers.filter(isSidecar).map(of)];
  const unready = needed.filter(({ ready }) => !ready).map(({ name }) => name);
  const isInitialized = initContainers.every((each) => hasInitialized(each, of(each)));
  const gatesPass = readinessGates.every(({ conditionType }) =>
    pod.status?.conditions?.some(({ type, status }) => type === conditionType && status === "True"),
  );
  const isContainersReady = isInitialized && unready.length === 0 && !isOver;
  const why = isOver
    ? { reason: "PodCompleted" }
    : unready.length > 0
      ? { reason: "ContainersNotReady", message: `containers with unready status: [${unready.join(" ")}]` }
      : { reason: "ReadinessGatesNotReady" };
  const condition = (type: string, isTrue: boolean, more: { reason?: string; message?: string } = {}): Condition => {
    const status = isTrue ? "True" : "False";
    const known = pod.status?.conditions?.find((each) => each.type === type);
    const lastTransitionTime =
      known?.status === status && known.lastTransitionTime !== undefined ? known.lastTransitionTime : now;
    return { type, status, lastTransitionTime, ...(isTrue ? {} : more) };
  };
  return {
    phase,
    hostIP: facts.hostIP,
    hostIPs: [{ ip: facts.hostIP }],
    startTime: facts.startTime,
    ...(facts.podIP === "" ? {} : { podIP: facts.podIP, podIPs: [{ ip: facts.podIP }] }),
    conditions: [
      condition("PodReadyToStartContainers", facts.podIP !== "" && !isOver),
      condition("Initialized", isInitialized, { reason: "ContainersNotInitialized" }),
      condition("ContainersReady", isContainersReady, why),
      condition("Ready", isContainersReady && gatesPass, why),
    ],
    containerStatuses: apps,
    ...(inits.length === 0 ? {} : { initContainerStatuses: inits }),
  };
}

function phaseOf({ spec }: NodePod, { statuses }: PodFacts): string {
  const apps = spec.containers.map(({ name }) => statuses.get(name));
  const plainInits = (spec.initContainers ?? []).filter((each) => !isSidecar(each)).map(({ name }) => statuses.get(name));
  const { restartPolicy = "Always" } = spec;
  const failed = (status: ContainerStatus | undefined) => (status?.state.terminated?.exitCode ?? 0) !== 0;
  if (restartPolicy === "Never" && plainInits.some(failed)) return "Failed";
  if (apps.every((status) => status?.state.terminated !== undefined)) {
    return apps.some(failed) ? "Failed" : "Succeeded";
  }
  const begun = apps.some((status) => status?.state.running ?? status?.state.terminated ?? status?.lastState.terminated);
  return begun ? "Running" : "Pending";
}

function hasInitialized(container: Container, { state, started, restartCount }: ContainerStatus): boolean {
  if (isSidecar(container)) return started || restartCount > 0;
  return state.terminated?.exitCode === 0;
}

function notCreated(name: string, image: string, hasInit: boolean): ContainerStatus {
  const state = { waiting: { reason: hasInit ? "PodInitializing" : "ContainerCreating" } };
  return { name, image, imageID: "", ready: false, started: false, restartCount: 0, state, lastState: {} };
}
