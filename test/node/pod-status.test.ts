// The node computes the phase and conditions of a pod.
import { expect, it } from "vitest";
import { podStatus } from "./pod-status.ts";
import type { ContainerState, ContainerStatus, NodePod } from "./pod-types.ts";

const NOW = "2026-11-21T12:00:00Z";
const running: ContainerState = { running: { startedAt: NOW } };
const ended = (exitCode: number): ContainerState => ({ terminated: { exitCode, reason: "Error" } });
const container = (name: string, state: ContainerState, more: Partial<ContainerStatus> = {}): ContainerStatus => {
  const isUp = state.running !== undefined;
  return { ...{ name, image: "i", imageID: "i", ready: isUp, started: isUp, restartCount: 0, state, lastState: {} }, ...more };
};
const pod = (spec: Partial<NodePod["spec"]> = {}, status: NodePod["status"] = {}): NodePod => ({
  metadata: { name: "p" },
  spec: { containers: [{ name: "app", image: "i" }], ...spec },
  status,
});
const SIDECAR = { name: "side", image: "i", restartPolicy: "Always" };

function statusOf(of: NodePod, ...statuses: readonly ContainerStatus[]) {
  const facts = { podIP: "10.200.1.1", hostIP: "10.200.0.1", startTime: NOW, isEnding: false };
  const { phase, conditions = [] } = podStatus(
    of,
    { ...facts, statuses: new Map(statuses.map((each) => [each.name, each])) },
    NOW,
  );
  const isTrue = conditions.filter(({ status }) => status === "True").map(({ type }) => type);
  return { phase, isTrue, conditions };
}

it("is pending until a container starts, then running, and ready with all containers", () => {
  expect(statusOf(pod())).toMatchObject({ phase: "Pending", isTrue: ["PodReadyToStartContainers", "Initialized"] });
  expect(statusOf(pod(), container("app", running))).toMatchObject({
    phase: "Running",
    isTrue: ["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"],
  });
});

it("is initialized once its sidecars have started, and not ready without them", () => {
  const of = pod({ initContainers: [SIDECAR] });
  expect(statusOf(of, container("side", running, { started: false })).isTrue).not.toContain("Initialized");
  expect(statusOf(of, container("side", running, { ready: false }), container("app", running)).isTrue).toEqual([
    "PodReadyToStartContainers",
    "Initialized",
  ]);
});

it("succeeds or fails with its containers, independent of its sidecars", () => {
  const of = pod({ initContainers: [SIDECAR], restartPolicy: "Never" });
  expect(statusOf(of, container("side", ended(137)), container("app", ended(0))).phase).toBe("Succeeded");
  expect(statusOf(of, container("side", running), container("app", ended(1))).phase).toBe("Failed");
  const init = pod({ initContainers: [{ name: "init", image: "i" }], restartPolicy: "Never" });
  expect(statusOf(init, container("init", ended(2))).phase).toBe("Failed");
});

it("keeps running while a container waits for its restart", () => {
  const waiting = { waiting: { reason: "CrashLoopBackOff" } };
  expect(statusOf(pod(), container("app", waiting, { lastState: ended(1) })).phase).toBe("Running");
});

it("waits for its readiness gates, and keeps the time of a condition that has not changed", () => {
  const gate = { readinessGates: [{ conditionType: "example.com/gate" }] };
  expect(statusOf(pod(gate), container("app", running)).isTrue).not.toContain("Ready");
  const before = { type: "Ready", status: "True", lastTransitionTime: "2026-11-21T11:00:00Z" } as const;
  const opened = { conditions: [{ type: "example.com/gate", status: "True" } as const, before] };
  expect(statusOf(pod(gate, opened), container("app", running)).conditions.at(-1)).toMatchObject(before);
});
