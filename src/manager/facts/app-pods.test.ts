import { describe, expect, it } from "vitest";
import { appOf } from "../../../test/support/source-apps.ts";
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import type { ContainerStatus, Pod } from "../../kube/client/resources.ts";
import { appPods, isUnschedulable, type PodView } from "./app-pods.ts";

const spec = {
  selector: { matchLabels: { app: "op" } },
  subsets: [{ name: "canary", labels: { version: "v2" }, routeRules: [] }],
};
const pod = (labels: Record<string, string>, status: Pod["status"] = { phase: "Running" }): Pod => ({
  metadata: { namespace: "ops", name: "p", labels },
  ...(status === undefined ? {} : { status }),
});
const { pods: selection } = appOf({ metadata: { name: "shop" }, spec });
const read = (...pods: Pod[]) => appPods(selection, pods)[0];
const proxyStatus = (more: Partial<ContainerStatus>): Pod["status"] => ({
  phase: "Running",
  initContainerStatuses: [{ name: "ctrlmesh-proxy", ready: false, restartCount: 0, ...more }],
});
const NODE = { nodeName: "node-3", containers: [] };
const own = { app: "op", [INJECTED_LABEL]: "shop" };

describe("the pods of an app", () => {
  it("are the pods that it selects, with its proxy, with another app's proxy, or without a proxy", () => {
    expect(read(pod(own))).toMatchObject({ proxy: "own" });
    expect(read(pod({ app: "op", [INJECTED_LABEL]: "store" }))).toMatchObject({ proxy: "other-app" });
    expect(read(pod({ app: "op" }))).toMatchObject({ proxy: "none" });
    expect(read(pod({ app: "other" }))).toBeUndefined();
  });
  it("may have a proxy of an unknown app, if the injected label was removed", () => {
    const bare = pod({ app: "op" });
    const spec = { containers: [], initContainers: [{ name: "ctrlmesh-proxy" }] };
    expect(read({ ...bare, spec })).toMatchObject({ proxy: "other-app" });
  });
  it("include relabelled pods while their proxies enforce its routes", () => {
    const carrying = { containers: [], initContainers: [{ name: "ctrlmesh-proxy" }] };
    const view = (more: Partial<PodView>): PodView => ({
      isApp: (name) => name !== "gone",
      appsOf: () => undefined,
      isStatusLate: () => false,
      mayHaveEarlierRoutes: () => false,
      ...more,
    });
    const see = (label: string, more: Partial<PodView> = {}, status: Pod["status"] = { phase: "Running" }) =>
      appPods(selection, [{ ...pod({ [INJECTED_LABEL]: label }, status), spec: carrying }], view(more))[0];
    // The proxy's registration shows it.
    expect(see("store", { appsOf: () => ["store", "shop"] })).toMatchObject({ proxy: "other-app", injectedFor: "store" });
    expect(see("store", { appsOf: () => ["store"] })).toBeUndefined();
    expect(see("store")).toBeUndefined();
    // The proxy has not registered yet, and no other app selects the pod.
    expect(see("gone")).toMatchObject({ proxy: "other-app", running: true });
    expect(see("gone", { appsOf: () => ["gone"] })).toBeUndefined();
    expect(see("gone", {}, { phase: "Pending" })).toBeUndefined();
  });
  it("include pods that were injected for it and lost their own labels: their proxies still serve", () => {
    expect(read(pod({ [INJECTED_LABEL]: "shop" }))).toMatchObject({ proxy: "own" });
  });
  it("belong to the first subset whose labels they have, otherwise to the default subset", () => {
    expect(read(pod({ ...own, version: "v2" }))?.subset).toBe("canary");
    expect(read(pod({ ...own, version: "v1" }))?.subset).toBe("");
  });
});

it("names the node of a pod that Kubernetes has deleted because of its node, and of no other", () => {
  const status = { conditions: [{ type: "DisruptionTarget", status: "True" as const, reason: "DeletionByTaintManager" }] };
  const on = (metadata: object, of: Pod["status"]): Pod => ({
    metadata: { ...pod(own).metadata, ...metadata },
    spec: NODE,
    ...(of && { status: of }),
  });
  const deleted = { deletionTimestamp: "2026-01-01T00:00:00Z" };
  expect(read(on(deleted, status))?.leftNode).toBe("node-3");
  expect(read(on({}, status))?.leftNode).toBeUndefined();
  expect(read(on(deleted, { phase: "Running" }))?.leftNode).toBeUndefined();
});

describe("a pod that has never run", () => {
  const creationTimestamp = "2026-01-01T00:00:00Z";
  const see = (status: Pod["status"], metadata: object = {}) => {
    const { metadata: own, ...rest } = pod({ app: "op" }, status);
    return read({ ...rest, metadata: { ...own, creationTimestamp, ...metadata } })?.neverRanSinceMs;
  };
  const operator = { name: "operator", ready: false, restartCount: 0 };
  const sidecar = { name: "ctrlmesh-proxy", ready: true, restartCount: 0, started: true, state: { running: {} } };
  const refused = [{ type: "PodScheduled", status: "False" }] as const;

  it.each<[string, Pod["status"]]>([
    ["has no node", { phase: "Pending", conditions: refused }],
    ["waits for its image", { phase: "Pending", containerStatuses: [{ ...operator, state: {} }] }],
    [
      "has a sidecar that runs, and waits for its image",
      {
        phase: "Pending",
        initContainerStatuses: [sidecar],
        containerStatuses: [operator, sidecar],
      },
    ],
  ])("is known with the time of its creation, if it %s", (_, status) => {
    expect(see(status)).toBe(Date.parse(creationTimestamp));
  });
  it.each<[string, Pod["status"]]>([
    ["runs", { phase: "Running", containerStatuses: [{ ...operator, state: { running: {} } }] }],
    ["crashes", { phase: "Running", containerStatuses: [{ ...operator, restartCount: 3, state: {} }] }],
    ["has an init container that ran", { phase: "Pending", initContainerStatuses: [{ ...operator, state: { running: {} } }] }],
    ["is ready", { phase: "Running", conditions: [{ type: "Ready", status: "True" }] }],
    ["has ended", { phase: "Failed" }],
  ])("is no pod that %s", (_, status) => {
    expect(see(status)).toBeUndefined();
  });
  it("has no node if the scheduler says so and the pod names none", () => {
    const unscheduled = pod({}, { phase: "Pending", conditions: refused });
    expect(isUnschedulable(unscheduled)).toBe(true);
    expect(isUnschedulable({ ...unscheduled, spec: { nodeName: "n", containers: [] } })).toBe(false);
    expect(isUnschedulable(pod({}, { phase: "Pending" }))).toBe(false);
  });
});

describe("the operator of a pod", () => {
  it.each<[string, Pod["status"], boolean]>([
    ["running", { phase: "Running" }, true],
    ["of the phase Unknown, as on a lost node", { phase: "Unknown" }, true],
    ["pending", { phase: "Pending" }, false],
    ["pending, with its sidecar already serving", { ...proxyStatus({ started: true }), phase: "Pending" }, true],
    ["whose proxy has never had a snapshot", proxyStatus({ started: false }), false],
    ["whose proxy crashed once and waits for its restart", proxyStatus({ started: false, state: { terminated: {} } }), true],
    [
      "whose proxy was restarted while the pod is pending",
      { ...proxyStatus({ started: false, restartCount: 1 }), phase: "Pending" },
      true,
    ],
    ["whose proxy was restarted", proxyStatus({ started: false, restartCount: 1 }), true],
    ["that has ended", { phase: "Failed" }, false],
  ])("counts as running or not by the status: a pod %s", (_, status, running) => {
    expect(read(pod(own, status))?.running).toBe(running);
  });
  it("may run if its container runs while another container waits: the phase is Pending until all have started", () => {
    const running = { name: "manager", ready: true, started: true, restartCount: 0, state: { running: {} } };
    const waiting = { name: "rbac-proxy", ready: false, restartCount: 0, state: {} };
    const restarting = { ...waiting, lastState: { terminated: {} }, restartCount: 1 };
    const bare = (...containerStatuses: ContainerStatus[]) => read(pod({ app: "op" }, { phase: "Pending", containerStatuses }));
    expect(bare(running, waiting)).toMatchObject({ proxy: "none", running: true });
    expect(bare(restarting, waiting)).toMatchObject({ running: true });
    expect(bare(waiting, waiting)).toMatchObject({ running: false });
    // After a restart the kubelet checks again whether the sidecar has started.
    const status = { ...proxyStatus({ started: false, state: { running: {} } }), phase: "Pending", containerStatuses: [running] };
    expect(read(pod(own, status))?.running).toBe(true);
  });
  it("may run if the proxy is an ordinary container, according to the other containers and the proxy's restarts", () => {
    const proxy: ContainerStatus = {
      name: "ctrlmesh-proxy",
      ready: false,
      started: false,
      restartCount: 0,
      state: { running: {} },
    };
    const operator: ContainerStatus = { name: "manager", ready: false, restartCount: 0, state: {} };
    const see = (...containerStatuses: ContainerStatus[]) =>
      read({
        ...pod(own, { phase: "Pending", containerStatuses }),
        spec: { nodeName: "n", containers: [{ name: "ctrlmesh-proxy" }] },
      });
    expect(see(proxy, operator)).toMatchObject({ proxy: "own", running: false });
    expect(see({ ...proxy, started: true }, operator)?.running).toBe(true);
    expect(see({ ...proxy, restartCount: 1 }, operator)?.running).toBe(true);
    expect(see(proxy, { ...operator, state: { running: {} } })?.running).toBe(true);
    const unlabelled = { ...pod({ app: "op" }), spec: { containers: [{ name: "ctrlmesh-proxy" }, { name: "manager" }] } };
    expect(read(unlabelled)).toMatchObject({ proxy: "other-app" });
  });
  it("may run if the pod has a node, while its status may be older than the snapshots of an earlier leader", () => {
    const starting = { ...pod(own, { ...proxyStatus({ started: false, state: { running: {} } }), phase: "Pending" }) };
    const placed = { ...starting, spec: { containers: [], nodeName: "n" } };
    const see = (each: Pod, isStatusLate: boolean) =>
      appPods(selection, [each], {
        isApp: () => true,
        appsOf: () => undefined,
        isStatusLate: () => isStatusLate,
        mayHaveEarlierRoutes: () => isStatusLate,
      })[0];
    expect(see(placed, true)?.running).toBe(true);
    expect(see(placed, false)?.running).toBe(false);
    expect(see(starting, true)?.running).toBe(false);
    expect(see({ ...placed, status: { phase: "Failed" } }, true)?.running).toBe(false);
  });
  describe("the operator behind a native sidecar that crashed before the operator's first start", () => {
    const crashed = { state: {}, lastState: { terminated: {} }, ready: false, restartCount: 4 };
    const sidecar: ContainerStatus = { name: "ctrlmesh-proxy", started: false, ...crashed };
    const operator: ContainerStatus = { name: "manager", ready: false, started: false, restartCount: 0, state: {} };
    const see = (
      { inits = [sidecar], apps = [operator] }: { inits?: ContainerStatus[]; apps?: ContainerStatus[] },
      view: Partial<PodView> = {},
    ) => {
      const status = { phase: "Pending", initContainerStatuses: inits, containerStatuses: apps };
      const each = { ...pod(own, status), spec: { nodeName: "n", containers: [{ name: "manager" }] } };
      const all = {
        isApp: () => true,
        appsOf: () => undefined,
        isStatusLate: () => false,
        mayHaveEarlierRoutes: () => false,
        ...view,
      };
      return appPods(selection, [each], all)[0];
    };
    it("does not run if the proxy got no routes", () => {
      expect(see({})).toMatchObject({ running: false });
      const again = { ...sidecar, state: { running: {} } };
      expect(see({ inits: [{ name: "before", ...crashed }, again] })).toMatchObject({ running: false });
    });
    it("may run if an earlier manager may have sent routes, which a restarted proxy still knows", () => {
      expect(see({}, { mayHaveEarlierRoutes: () => true })).toMatchObject({ running: true, unstarted: true });
    });
    it.each<[string, Parameters<typeof see>[0]]>([
      ["the operator runs", { apps: [{ ...operator, state: { running: {} } }] }],
      ["the operator has run", { apps: [{ ...operator, lastState: { terminated: {} } }] }],
      ["the operator was restarted", { apps: [operator, { ...operator, name: "other", restartCount: 1 }] }],
      ["an init container after the proxy has run", { inits: [sidecar, { name: "migrate", ...crashed }] }],
      ["the proxy has started now", { inits: [{ ...sidecar, started: true }] }],
      ["the status does not contain the operator", { apps: [] }],
      ["the proxy is an ordinary container, which does not delay the others", { inits: [], apps: [sidecar, operator] }],
    ])("may run if %s", (_, statuses) => {
      expect(see(statuses)).toMatchObject({ running: true });
      expect(see(statuses)?.unstarted).toBeUndefined();
    });
  });
  it("may run if the pod has no proxy, as soon as the pod has a node", () => {
    const waiting = pod({ app: "op" }, { phase: "Pending" });
    expect(read(waiting)).toMatchObject({ proxy: "none", running: false });
    expect(read({ ...waiting, spec: { containers: [], nodeName: "n" } })).toMatchObject({ proxy: "none", running: true });
    expect(read({ ...waiting, spec: { containers: [], nodeName: "n" }, status: { phase: "Failed" } })?.running).toBe(false);
    expect(read({ ...pod(own, { phase: "Pending" }), spec: { containers: [], nodeName: "n" } })?.running).toBe(false);
  });
});
