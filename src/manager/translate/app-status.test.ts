import { describe, expect, it } from "vitest";
import { group, objects, snapshot, subset, table } from "../../../test/support/route-table.ts";
import type { ProxyFacts } from "../snapshot-server/proxy-registry.ts";
import type { AppPod } from "./app-pods.ts";
import { appStatus, rejectedStatus, type StatusFacts } from "./app-status.ts";
import type { AppPlan } from "./plan-app.ts";

const wished = table([subset("canary")], { prod: [], pilot: [0] });
const rules = (name: string, digest: string) => ({ ...snapshot(wished, { subset: name }), digest });
const plan: AppPlan = {
  wished,
  subsets: ["", "canary"],
  rules: new Map([
    ["", rules("", "d-default")],
    ["canary", rules("canary", "d-canary")],
  ]),
  digest: "d",
  waits: [],
};
const pod = (name: string, of: string, more: Partial<AppPod> = {}): AppPod => ({
  namespace: "shop",
  name,
  subset: of,
  proxy: "own",
  ended: false,
  running: true,
  ready: true,
  ...more,
});
const proxy = (digest: string, more: Partial<ProxyFacts> = {}): ProxyFacts => ({
  connected: true,
  enforced: { ...snapshot(wished), digest },
  outstanding: undefined,
  inDoubt: [],
  unresolved: false,
  version: 1,
  problems: [],
  leader: false,
  lock: null,
  ...more,
});

function status(more: Partial<StatusFacts> = {}, proxies: Record<string, ProxyFacts> = {}) {
  const all: Record<string, ProxyFacts> = {
    "shop/a": proxy("d-default", { leader: true }),
    "shop/c": proxy("d-canary"),
    ...proxies,
  };
  return appStatus({
    generation: 4,
    previous: undefined,
    pods: [pod("a", ""), pod("c", "canary")],
    factsOf: (key) => all[key],
    plan,
    version: 7,
    lockName: "lock",
    idle: [],
    now: "2026-01-01T00:00:00Z",
    ...more,
  });
}
const ofType = (result: ReturnType<typeof status>, type: string) => result.conditions?.find((row) => row.type === type);

describe("appStatus", () => {
  it("is ready when every proxy is in sync and every owning subset has a ready pod", () => {
    const result = status();
    expect(ofType(result, "Ready")).toMatchObject({ status: "True", observedGeneration: 4 });
    expect(result.proxies).toEqual({ total: 2, connected: 2, synced: 2 });
    expect(result.subsets).toEqual([
      { name: "", namespaces: 1, readyPods: 1, pods: 1, lock: "lock", leader: "a" },
      { name: "canary", namespaces: 1, readyPods: 1, pods: 1, lock: "lock---canary" },
    ]);
  });
  it("says which subset owns namespaces and has nobody to work on them", () => {
    expect(ofType(status({ pods: [pod("a", "")] }), "Ready")).toMatchObject({
      status: "False",
      reason: "SubsetWithoutPods",
      message: expect.stringContaining('subset "canary" owns 1 namespaces'),
    });
  });
  it("says which namespace waits for which pod, and counts a healthy handover as ready", () => {
    const result = status(
      { plan: { ...plan, waits: [{ namespace: "pilot", pod: "a", cause: "holds" }] } },
      { "shop/a": proxy("old", { outstanding: snapshot(wished) }) },
    );
    expect(ofType(result, "Converged")).toMatchObject({
      status: "False",
      reason: "Moving",
      message: expect.stringContaining("pilot waits for pod a"),
    });
    expect(ofType(result, "Ready")).toMatchObject({ status: "True" });
    expect(result.handover).toMatchObject({
      from: "",
      to: "canary",
      done: 0,
      total: 1,
      waitingOn: [{ namespace: "pilot", pod: "a" }],
    });
    expect(result.namespaces?.moving).toBe(1);
  });
  it("is not ready while a proxy is behind or away, whatever moves", () => {
    const moving = { ...plan, waits: [{ namespace: "pilot", pod: "a", cause: "holds" as const }] };
    expect(ofType(status({ plan: moving }, { "shop/c": proxy("", { enforced: undefined }) }), "Ready")).toMatchObject({
      status: "False",
      message: expect.stringContaining("pod c is behind"),
    });
    expect(ofType(status({}, { "shop/c": proxy("old", { connected: false }) }), "Ready")).toMatchObject({
      reason: "ProxiesBehind",
      message: expect.stringContaining("pod c is not connected"),
    });
  });
  it("says which pod resources that move as a whole wait for, and moves no namespace", () => {
    const divided = { ...wished, rules: [...wished.rules, objects("canary", "tier=gold", group("", "secrets"))] };
    const waits = [{ namespace: "", pod: "a", cause: "holds" as const }];
    const result = status({ plan: { ...plan, wished: divided, waits } });
    expect(ofType(result, "Converged")).toMatchObject({
      reason: "Moving",
      message: "resources move between subsets as a whole: they wait for pod a",
    });
    expect(result.handover).toMatchObject({ from: "", to: "canary", waitingOn: [{ pod: "a", reason: "NotAcknowledged" }] });
    expect(result.handover?.waitingOn?.[0]).not.toHaveProperty("namespace");
    expect(result.namespaces?.moving).toBe(0);
  });
  it("says which subset owns objects by their labels and has nobody to work on them", () => {
    const byLabels = table([objects("canary", "tier=gold", group("", "secrets"))], { prod: [] });
    expect(ofType(status({ plan: { ...plan, wished: byLabels }, pods: [pod("a", "")] }), "Ready")).toMatchObject({
      reason: "SubsetWithoutPods",
      message: expect.stringContaining('subset "canary" owns objects by their labels'),
    });
  });
  it("reports no move while a pod has only not reported yet", () => {
    const result = status({ plan: { ...plan, waits: [{ namespace: "pilot", pod: "late", cause: "unreported" }] } });
    expect(result.namespaces?.moving).toBe(0);
    expect(result.handover).toBeUndefined();
    expect(ofType(result, "Converged")).toMatchObject({ status: "False", reason: "Rebuilding" });
  });
  it("names a pod that carries another app's proxy", () => {
    expect(
      ofType(status({ pods: [pod("a", ""), pod("c", "canary"), pod("x", "", { proxy: "foreign" })] }), "Ready"),
    ).toMatchObject({
      reason: "OwnershipConflict",
      message: expect.stringContaining("pod x"),
    });
  });
  it("names what has no effect in this version", () => {
    expect(ofType(status({ idle: ["spec.configuration.webhook"] }), "Accepted")).toMatchObject({
      status: "True",
      reason: "ValidInPart",
      message: expect.stringContaining("spec.configuration.webhook"),
    });
  });
  it("passes on why a proxy refused its snapshot", () => {
    expect(ofType(status({}, { "shop/c": proxy("d-canary", { problems: ["table: missing"] }) }), "Ready")).toMatchObject({
      status: "False",
      reason: "SnapshotRefused",
      message: "pod c refused its snapshot: table: missing",
    });
  });
  it("is not ready while a subset is denied its lock, and says which Role is to be mended", () => {
    const lock = { lockName: "lock---canary", resource: "leases.coordination.k8s.io", deniedVerbs: ["get"], reason: "" };
    const denied = status({}, { "shop/c": proxy("d-canary", { lock }) });
    const message = expect.stringContaining('"resourceNames":["lock---canary"]');
    expect(ofType(denied, "LockPermitted")).toMatchObject({
      status: "False",
      reason: "LockDenied",
      observedGeneration: 4,
      message,
    });
    expect(ofType(denied, "Ready")).toMatchObject({ status: "False", reason: "LockDenied", message });
    const unknown = status();
    expect(ofType(unknown, "LockPermitted")).toMatchObject({ status: "Unknown" });
    expect(ofType(unknown, "Ready")).toMatchObject({ status: "True" });
  });
  it("names the pods that run without a proxy", () => {
    expect(
      ofType(status({ pods: [pod("a", ""), pod("bare", "", { proxy: "none" }), pod("c", "canary")] }), "TrafficIntercepted"),
    ).toMatchObject({
      status: "False",
      reason: "PodsWithoutProxy",
      message: expect.stringContaining("bare"),
    });
  });
  it("keeps the time of the last transition while a condition stays as it is", () => {
    const before = status();
    const after = status({ previous: before, now: "2026-01-01T01:00:00Z", generation: 5 });
    expect(ofType(after, "Ready")).toMatchObject({ lastTransitionTime: "2026-01-01T00:00:00Z", observedGeneration: 5 });
  });
});

it("rejectedStatus keeps what was enforced and says why the new spec is not", () => {
  const result = rejectedStatus({
    generation: 5,
    previous: status(),
    now: "2026-01-01T01:00:00Z",
    reason: "Invalid",
    message: "spec.selector: empty",
  });
  expect(result).toMatchObject({ routeVersion: 7, observedGeneration: 5 });
  expect(ofType(result, "Accepted")).toMatchObject({
    status: "False",
    reason: "Invalid",
    message: expect.stringContaining("spec.selector: empty"),
  });
  expect(ofType(result, "Ready")).toMatchObject({
    status: "False",
    observedGeneration: 5,
    lastTransitionTime: "2026-01-01T01:00:00Z",
  });
});
