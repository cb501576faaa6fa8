import { expect, it } from "vitest";
import { compileHere } from "../../../test/support/compile.ts";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { NO_CLUSTERS } from "../../../test/support/no-clusters.ts";
import { noEvictor } from "../../../test/support/no-evictor.ts";
import { appsIn } from "../../../test/support/source-apps.ts";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import { VIRTUAL_APPS } from "../../api/resources.ts";
import type { VirtualApp } from "../../api/virtual-app.ts";
import { silentLogger } from "../../base/log.ts";
import type { Pod } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import { createStore } from "../../runtime/store.ts";
import type { Compile } from "../apps/compile/compiler.ts";
import { createLabelStates } from "../labels/label-state.ts";
import { createProxyRegistry } from "../server/proxy-registry.ts";
import { createVirtualAppSource } from "../virtual-app/virtual-app-source.ts";
import { youngAt } from "./publish-routes.ts";
import { createAppReconciler } from "./reconciler.ts";

const { signal } = new AbortController();
const ref = { namespace: "ops", name: "shop" };
/**
 * An earlier leader may have served its proxy, which was restarted. The operator's image is still missing.
 */
const unstarted: Pod = {
  metadata: { ...ref, name: "p", uid: "uid-p", labels: { component: "shop", [INJECTED_LABEL]: "shop" } },
  spec: { nodeName: "n", containers: [{ name: "operator" }], initContainers: [{ name: "ctrlmesh-proxy" }] },
  status: {
    phase: "Pending",
    initContainerStatuses: [{ name: "ctrlmesh-proxy", ready: false, started: false, restartCount: 3 }],
    containerStatuses: [{ name: "operator", ready: false, restartCount: 0 }],
  },
};

const never = (error: unknown) => {
  throw error;
};

function setUp(wasListed: boolean, status: VirtualApp["status"] = undefined, compile: Compile = compileHere) {
  const [clock, client] = [createFakeClock(), createFakeKubeClient()];
  const apps = createStore<VirtualApp>(never);
  const namespaces = createStore<KubeObject>(never);
  namespaces.replace([{ metadata: { name: "canary-1", uid: "n1", resourceVersion: "1" } }]);
  const sample = sampleVirtualApp() as unknown as VirtualApp;
  apps.replace([client.put(VIRTUAL_APPS, { ...sample, status, metadata: { ...ref, uid: "uid-new", generation: 1 } })]);
  const reconciler = createAppReconciler({
    source: createVirtualAppSource(),
    client,
    store: apps,
    apps: appsIn(apps),
    namespaces,
    clock,
    services: { list: () => undefined, forget: () => undefined },
    replicaSets: { list: () => undefined, forget: () => undefined },
    evictor: noEvictor,
    labels: createLabelStates(new Map()),
    pods: { list: () => [unstarted], get: () => unstarted },
    ...NO_CLUSTERS,
    past: { gone: () => [], goneAbroad: () => [], isStatusLate: () => wasListed, mayHaveEarlierRoutes: () => wasListed },
    registry: createProxyRegistry({ log: silentLogger() }),
    events: { event: () => undefined },
    compile,
    onCompiled: () => undefined,
    log: silentLogger(),
    injection: { look: () => ({ verdict: INJECTED, againMs: undefined }), hasChanged: () => false, forget: () => false },
  });
  const read = () => client.read<VirtualApp>(VIRTUAL_APPS, ref)?.status;
  return { client, reconciler, read };
}

const INJECTED = { status: "True", reason: "InForce", message: "m" } as const;

async function firstApply(wasListed: boolean): Promise<VirtualApp["status"]> {
  const { reconciler, read } = setUp(wasListed);
  await reconciler.reconcile(ref, signal);
  return read();
}

it("an app that was created again under its name grants nothing beside an older proxy that may still have routes", async () => {
  const waits = await firstApply(true);
  expect(waits?.conditions?.find(({ type }) => type === "Converged")).toMatchObject({ status: "False" });
  expect(waits?.handover?.waitingOn).toMatchObject([{ pod: "p", reason: "NotStarted" }]);
});

it("a first apply does not wait for a pod that is newer than this manager's leadership and whose proxy got no routes", async () => {
  expect((await firstApply(false))?.handover).toBeUndefined();
});

it("replaces InjectionReady alone in the status when the reconcile fails, and reports the first error", async () => {
  const row = { status: "False", reason: "R", message: "", lastTransitionTime: "2026-01-01T00:00:00Z" } as const;
  const before = { routeVersion: 3, conditions: ["Ready", "InjectionReady"].map((type) => ({ type, ...row })) };
  const { client, reconciler, read } = setUp(true, before);
  const failures = [new Error("the finalizer is refused")];
  client.before = ({ verb }) => {
    const failure = verb === "patch" && failures.pop();
    if (failure) throw failure;
  };
  await expect(reconciler.reconcile(ref, signal)).rejects.toThrow("the finalizer is refused");
  expect(read()).toMatchObject({
    routeVersion: 3,
    conditions: [
      { type: "Ready", ...row },
      { type: "InjectionReady", ...INJECTED },
    ],
  });
});

it("a spec that takes too long to compile is refused with the reason, and is looked at again later", async () => {
  const { reconciler, read } = setUp(true, undefined, async () => undefined);
  const { requeueAfterMs } = await reconciler.reconcile(ref, signal);
  expect(requeueAfterMs).toBe(600_000);
  const accepted = read()?.conditions?.find(({ type }) => type === "Accepted");
  expect(accepted).toMatchObject({ status: "False", reason: "Invalid" });
  expect(accepted?.message).toMatch(
    /^spec: to apply the rules to the cluster's 1 namespaces, the manager needs more than 10 s of computing, .*; use fewer rules, or a simpler namespaceRegex/,
  );
});

const born = Date.parse("2026-01-01T00:00:00Z");
const youngNamespaces = {
  get: (name: string) => (name === "fresh" ? { metadata: { name, creationTimestamp: "2026-01-01T00:00:00Z" } } : undefined),
};

it("a namespace is young for ten seconds, also if the clock is behind", () => {
  expect(youngAt(youngNamespaces, born + 9_999)("fresh")).toBe(true);
  expect(youngAt(youngNamespaces, born - 5_000)("fresh")).toBe(true);
  expect(youngAt(youngNamespaces, born + 10_000)("fresh")).toBe(false);
});
it("an unknown namespace is not young, and neither is the cluster scope", () => {
  expect(youngAt(youngNamespaces, born)("other")).toBe(false);
  expect(youngAt(youngNamespaces, born)("")).toBe(false);
});
