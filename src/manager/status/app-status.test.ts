import { describe, expect, it } from "vitest";
import { appPod as pod, proxyFacts } from "../../../test/support/pod-facts.ts";
import { group, limit, objects, sharded, snapshot, subset, table } from "../../../test/support/route-table.ts";
import { VIRTUAL_APP_WORDS } from "../../../test/support/source-words.ts";
import { appStatusSchema } from "../../api/app-status.ts";
import type { AppPlan } from "../../mesh/handover/plan-app.ts";
import type { ProxyFacts } from "../../mesh/handover/proxy-facts.ts";
import { appStatus, rejectedStatus } from "./app-status.ts";
import type { StatusFacts } from "./facts.ts";

const desired = table([subset("canary")], { prod: [], pilot: [0] });
const rules = (name: string, digest: string) => ({ ...snapshot(desired, { subset: name }), digest });
const plan: AppPlan = {
  desired,
  subsets: ["", "canary"],
  rules: new Map([
    ["", rules("", "d-default")],
    ["canary", rules("canary", "d-canary")],
  ]),
  digest: "d",
  waits: [],
  rulesFor: ({ subset }) => {
    const own = plan.rules.get(subset);
    if (own === undefined) throw new Error(`no rules of ${subset}`);
    return own;
  },
  kept: 0,
  needsConfirmation: false,
  isDissolving: false,
};
const wait = { namespaces: ["pilot"], podName: "a", subset: "", to: ["canary"] };
const proxy = (digest: string, more: Partial<ProxyFacts> = {}) =>
  proxyFacts({ acknowledged: { ...snapshot(desired), digest }, ...more });

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
    words: VIRTUAL_APP_WORDS,
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
    expect(ofType(result, "Accepted")?.message).toBe("the spec is valid");
    const warning = new Map([...plan.rules].map(([name, own]) => [name, { ...own, guard: "Warn" } as const]));
    expect(ofType(status({ plan: { ...plan, rules: warning } }), "Accepted")?.message).toBe(
      "the spec is valid; the guard is Warn: writes to objects of other subsets pass",
    );
    expect(result.subsets).toEqual([
      { name: "", namespaces: 1, readyPods: 1, pods: 1, lock: "lock", leader: "a" },
      { name: "canary", namespaces: 1, readyPods: 1, pods: 1, lock: "lock---canary" },
    ]);
  });
  it("counts the gaps of a sharded family, and its cluster scope as no namespace", () => {
    const members = { "": [1], pilot: [1], prod: [], late: [] };
    const family = table([sharded(group("", "pods")), subset("canary")], members);
    const fenced = { ...family, fenced: new Set(["", "pilot"]) };
    const of = (more: Partial<AppPlan>) => status({ plan: { ...plan, desired: family, ...more } });
    const result = of({});
    expect(result.namespaces).toEqual({ total: 1, moving: 0, held: 0, gaps: 2 });
    expect(result.subsets?.map(({ namespaces }) => namespaces)).toEqual([0, 1]);
    const partly = table([sharded(group("", "pods", "secrets")), subset("canary", group("", "pods"))], {
      "": [],
      pilot: [1],
      prod: [],
    });
    expect(of({ desired: partly }).namespaces).toMatchObject({ total: 1, gaps: 2 });
    const open = table([limit()], { pilot: [0], prod: [] });
    expect(of({ desired: open }).namespaces).toEqual({ total: 1, moving: 0, held: 0 });
    // A grant that no pod of the shard enforces yet.
    const granted = { ...snapshot(family, { subset: "canary" }), digest: "new" };
    const behind = proxyFacts({ acknowledged: { ...snapshot(fenced, { subset: "canary" }), digest: "old" } });
    const rulesFor = ({ subset: of }: { subset: string }) => (of === "canary" ? granted : rules("", "d-default"));
    const moving = status(
      { plan: { ...plan, desired: family, rules: new Map([["canary", granted]]), subsets: ["canary"], rulesFor } },
      { "shop/c": behind },
    );
    expect(moving.namespaces?.moving).toBe(1);
  });
  it("names a subset that owns namespaces and has no ready pod", () => {
    expect(ofType(status({ pods: [pod("a", "")] }), "Converged")).toMatchObject({ status: "True" });
    expect(ofType(status({ pods: [pod("a", "")] }), "Ready")).toMatchObject({
      status: "False",
      reason: "SubsetWithoutPods",
      message: 'subset "canary" owns 1 namespace and has no ready pod, so nothing reconciles there',
    });
  });
  it("judges each subset by its own pods", () => {
    const reasons = (facts: Parameters<typeof status>[0], ...proxies: Parameters<typeof status>[1][]) =>
      Object.fromEntries(status(facts, ...proxies).subsets?.map(({ name, reason }) => [name, reason]) ?? []);
    expect(reasons({})).toEqual({ "": undefined, canary: undefined });
    expect(reasons({ pods: [pod("a", "")] })).toEqual({ "": undefined, canary: "SubsetWithoutPods" });
  });
  it("names the pods that have not started, while nothing waits for them", () => {
    const pending = { ready: false, running: false, neverRanSinceMs: 0 };
    const messageOf = (...pods: ReturnType<typeof pod>[]) => ofType(status({ pods }), "Ready")?.message;
    expect(messageOf(pod("a", ""), pod("b", "canary", pending))).toMatch(
      /so nothing reconciles there; pod b has not started yet$/,
    );
    const ready = [pod("a", ""), pod("c", "canary")];
    expect(messageOf(...ready, pod("d", "canary", pending), pod("e", "", pending))).toMatch(
      /proxies enforce route 7; pod d and 1 more have not started yet$/,
    );
    expect(messageOf(...ready, pod("d", "canary", { ...pending, terminating: true }))).toMatch(/enforce route 7$/);
  });
  it("names the namespace that waits and its pod, and Ready stays True in a healthy handover", () => {
    const result = status(
      { plan: { ...plan, waits: [{ ...wait, cause: "holds" }] } },
      { "shop/a": proxy("old", { outstanding: snapshot(desired) }) },
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
  it("is not ready while a proxy is behind or disconnected, also during a handover", () => {
    const moving = { ...plan, waits: [{ ...wait, cause: "holds" as const }] };
    expect(ofType(status({ plan: moving }, { "shop/c": proxy("", { acknowledged: undefined }) }), "Ready")).toMatchObject({
      status: "False",
      message: expect.stringContaining("pod c is behind"),
    });
    expect(ofType(status({}, { "shop/c": proxy("old", { connected: false }) }), "Ready")).toMatchObject({
      reason: "ProxiesBehind",
      message: expect.stringContaining("pod c is not connected"),
    });
  });
  it("names the pod for which resources that move as a whole wait, and counts no moving namespace", () => {
    const divided = { ...desired, rules: [...desired.rules, objects("canary", "tier=gold", group("", "secrets"))] };
    const waits = [{ ...wait, namespaces: [], cause: "holds" as const }];
    const result = status({ plan: { ...plan, desired: divided, waits } });
    expect(ofType(result, "Converged")).toMatchObject({
      reason: "Moving",
      message: "resources move between subsets as a whole: they wait for pod a",
    });
    expect(result.handover).toMatchObject({ from: "", to: "canary", waitingOn: [{ pod: "a", reason: "NotAcknowledged" }] });
    expect(result.handover?.waitingOn?.[0]?.namespace).toBeUndefined();
    expect(result.namespaces?.moving).toBe(0);
  });
  it("names a subset that owns objects by label and has no ready pod", () => {
    const byLabels = table([objects("canary", "tier=gold", group("", "secrets"))], { prod: [] });
    expect(ofType(status({ plan: { ...plan, desired: byLabels }, pods: [pod("a", "")] }), "Ready")).toMatchObject({
      reason: "SubsetWithoutPods",
      message: expect.stringContaining('subset "canary" owns objects by their labels'),
    });
  });
  it("counts no moving namespace while a pod has only not reported yet", () => {
    const result = status({ plan: { ...plan, waits: [{ ...wait, podName: "late", subset: undefined, cause: "unreported" }] } });
    expect(result.namespaces?.moving).toBe(0);
    expect(result.handover).toBeUndefined();
    expect(ofType(result, "Converged")).toMatchObject({ status: "Unknown", reason: "Rebuilding" });
  });
  it("is not ready while no pod has a proxy, or a pod runs without one", () => {
    const bare = pod("bare", "", { proxy: "none" });
    const none = status({ pods: [] });
    expect(ofType(none, "Ready")).toMatchObject({ status: "False", reason: "NotIntercepted" });
    expect(ofType(none, "Ready")?.message).toContain("no pod has the proxy yet");
    expect(ofType(none, "TrafficIntercepted")).toMatchObject({ status: "Unknown", reason: "NoPods" });
    const some = ofType(status({ pods: [pod("a", ""), bare, pod("c", "canary")] }), "Ready");
    expect(some).toMatchObject({ status: "False", reason: "NotIntercepted" });
    expect(some?.message).toContain("pod bare carries no proxy");
  });
  it("says why pods of the manager's own namespace have no proxy", () => {
    const message = "pods in the manager's own namespace are never injected";
    const row = { type: "InjectionReady", status: "False", reason: "ManagerNamespace", message } as const;
    const previous = { conditions: [{ ...row, lastTransitionTime: "2026-01-01T00:00:00Z" }] };
    expect(ofType(status({ previous, pods: [] }), "Ready")).toMatchObject({
      reason: "NotIntercepted",
      message: expect.stringContaining(`; ${message}`),
    });
  });
  it("names a removed pod that may still write", () => {
    const result = status({ plan: { ...plan, waits: [{ ...wait, podName: "gone", cause: "pod-gone" }] } });
    expect(result.handover).toMatchObject({ phase: "Draining", waitingOn: [{ pod: "gone", reason: "PodGone" }] });
    expect(ofType(result, "Converged")?.message).toContain("was deleted before its containers were seen to end");
  });
  it("counts no moving namespace while a new manager does not know which pods were deleted before it led", () => {
    const result = status({ plan: { ...plan, waits: [{ ...wait, podName: "", subset: undefined, cause: "just-listed" }] } });
    expect(result.namespaces?.moving).toBe(0);
    expect(result.handover).toBeUndefined();
    expect(ofType(result, "Converged")).toMatchObject({
      status: "Unknown",
      reason: "Rebuilding",
      message: expect.stringContaining("which pods were deleted"),
    });
  });
  it("names a pod that carries another app's proxy", () => {
    expect(
      ofType(status({ pods: [pod("a", ""), pod("c", "canary"), pod("x", "", { proxy: "other-app" })] }), "Ready"),
    ).toMatchObject({
      reason: "OwnershipConflict",
      message: expect.stringContaining("pod x"),
    });
  });
  it("shows the phase Dissolving until every pod owns everything again", () => {
    const dissolving: AppPlan = {
      ...plan,
      isDissolving: true,
      waits: [{ ...wait, subset: "canary", to: [""], podName: "c", cause: "holds" }],
    };
    const result = status(
      { plan: dissolving },
      { "shop/c": proxy("d-canary", { backlog: { heldNamespaces: 0, drainingWrites: 2 } }) },
    );
    expect(result.handover).toMatchObject({
      from: "canary",
      to: "",
      phase: "Dissolving",
      done: 1,
      total: 2,
      waitingOn: [{ namespace: "pilot", pod: "c", reason: "WriteInFlight" }],
    });
    expect(ofType(result, "Converged")).toMatchObject({
      status: "False",
      reason: "Dissolving",
      message: "being deleted: 1 of 2 pods own everything again; pilot waits for pod c: 2 writes in flight",
    });
  });
  it("names the pod that a deletion waits for, also one that has never started", () => {
    const pods = [pod("a", ""), pod("c", "canary"), pod("x", "canary", { running: false, ready: false })];
    const result = status({ plan: { ...plan, isDissolving: true, waits: [] }, pods });
    expect(result.handover).toMatchObject({ phase: "Dissolving", done: 2, total: 3 });
    expect(result.handover?.waitingOn).toMatchObject([{ pod: "x", reason: "NotStarted" }]);
    expect(ofType(result, "Converged")?.message).toBe(
      "being deleted: 2 of 3 pods own everything again; waiting for pod x: its proxy has not started, and without the app no manager could send it routes",
    );
  });
  it("has the largest number of held namespaces of any proxy", () => {
    expect(
      status({}, { "shop/c": proxy("d-canary", { backlog: { heldNamespaces: 3, drainingWrites: 0 } }) }).namespaces,
    ).toMatchObject({ held: 3 });
  });
  it("has all conditions from the first write, each with this generation", () => {
    const said = status().conditions ?? [];
    expect(said.map(({ type }) => type)).toEqual([...["Ready", "Accepted", "Converged", "LockPermitted", "TrafficIntercepted"]]);
    expect(new Set(said.map(({ observedGeneration }) => observedGeneration))).toEqual(new Set([4]));
    const refused = rejectedStatus({
      generation: 1,
      previous: undefined,
      now: "2026-01-01T00:00:00Z",
      message: "m",
    });
    expect(refused.conditions?.map(({ type, status: is }) => `${type} ${is}`)).toEqual([
      "Ready False",
      "Accepted False",
      "Converged False",
      "LockPermitted Unknown",
      "TrafficIntercepted Unknown",
    ]);
  });
  it("is not ready while calls of the operator's webhooks go past the proxies, and has the condition only with webhooks", () => {
    const webhook = { status: "False", reason: "PortNotNamed", message: "pod a: name the port" } as const;
    const told = status({ webhook });
    expect(ofType(told, "WebhookIntercepted")).toMatchObject(webhook);
    expect(ofType(told, "Ready")).toMatchObject({ ...webhook, message: "the operator's webhooks: pod a: name the port" });
    const unknown = { ...webhook, status: "Unknown", reason: "NoService" } as const;
    expect(ofType(status({ webhook: unknown }), "Ready")).toMatchObject({ status: "True" });
    expect(ofType(status({ previous: told }), "WebhookIntercepted")).toBeUndefined();
  });
  it("contains the reason for which a proxy rejected its snapshot", () => {
    expect(
      ofType(status({}, { "shop/c": proxy("d-canary", { problems: { routes: ["table: missing"] } }) }), "Ready"),
    ).toMatchObject({
      status: "False",
      reason: "SnapshotRefused",
      message: "pod c refused its snapshot: table: missing",
    });
  });
  it("cuts each text to a length that the API server accepts", () => {
    const long = "x".repeat(60_000);
    const restart = { subset: "canary", pod: "c", uid: "u", since: "2026-01-01T00:00:00Z", left: 1, reason: "EvictionFailed" };
    const refusing = { "shop/c": proxy("d-canary", { problems: { routes: [long] } }) };
    const injection = { status: "False", reason: "WebhookPending", message: long } as const;
    const told = status({ restart: { ...restart, message: long }, injection }, refusing);
    const cut = (told.conditions ?? []).flatMap(({ type, message }) => (message.endsWith("…") ? [type] : []));
    expect(cut).toEqual(["Ready", "Converged", "InjectionReady"]);
    expect(appStatusSchema.safeParse(told).error).toBeUndefined();
    const rejected = rejectedStatus({
      generation: 4,
      previous: undefined,
      now: "2026-01-01T00:00:00Z",
      message: long,
    });
    expect(appStatusSchema.safeParse(rejected).error).toBeUndefined();
  });
  it("names the resource type that a proxy does not enforce, and the handover does not wait for it", () => {
    const told = status({}, { "shop/c": proxy("d-canary", { problems: { policy: ["rules: missing"] } }) });
    expect(ofType(told, "Ready")).toMatchObject({
      status: "False",
      reason: "SnapshotRefused",
      message: 'pod c does not enforce its resource of type "policy": rules: missing',
    });
  });
  it("is not ready while a subset is denied its lock, and contains the rules to add to the Role", () => {
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
  it("is not ready while a pod is refused what looks like its lock", () => {
    const unnamedLock = { lockName: "op", resource: "configmaps" };
    const refused = status({}, { "shop/c": proxy("d-canary", { unnamedLock }) });
    const expected = { status: "False", reason: "LockNotNamed", message: expect.stringContaining('"op" looks like') };
    expect(ofType(refused, "LockPermitted")).toMatchObject(expected);
    expect(ofType(refused, "Ready")).toMatchObject(expected);
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
  it("keeps lastTransitionTime while the status of a condition stays", () => {
    const before = status();
    const after = status({ previous: before, now: "2026-01-01T01:00:00Z", generation: 5 });
    expect(ofType(after, "Ready")).toMatchObject({ lastTransitionTime: "2026-01-01T00:00:00Z", observedGeneration: 5 });
  });
});

it("rejectedStatus keeps the enforced routes, and gives the reason for the refusal", () => {
  const result = rejectedStatus({
    generation: 5,
    previous: status(),
    now: "2026-01-01T01:00:00Z",
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

it("Converged is not True while a proxy may enforce another snapshot too, and Ready stays True", () => {
  const doubtful = proxy("d-canary", { mayHoldMore: true, outstanding: { ...snapshot(desired), digest: "d-canary" } });
  const { conditions, proxies } = status({}, { "shop/c": doubtful });
  expect(proxies).toMatchObject({ total: 2, synced: 1 });
  expect(conditions?.filter(({ type }) => type === "Ready" || type === "Converged").map(({ status: is }) => is)).toEqual([
    "True",
    "False",
  ]);
});
