// The restart of pods that have lost namespaces, on the real control plane with Deployments, the eviction API and PodDisruptionBudgets.
// The tests check the pods, watches through the proxies, and the API server's audit log.
import { afterAll, beforeAll, expect, it } from "vitest";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { EVENTS, LEASES, PODS } from "../../src/kube/client/resources.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { untilGrown } from "../support/grown-namespace.ts";
import { type InformerProbe, startInformerProbe } from "../support/informer-probe.ts";
import { injectedWorkload } from "../support/injected-workload.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { FOOS, type Mesh, startMesh } from "../support/mesh.ts";
import { type PodRunner, startPodRunner } from "../support/pod-runner.ts";
import { describeWithKube, itNightly } from "../support/requirements.ts";

const NAMESPACE = "foo-system";
const APP = { namespace: NAMESPACE, name: "foo-operator" };
const MOVER = "team-b";
const NO_EVICTION = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: none, namespace: ${NAMESPACE} }
spec: { maxUnavailable: 0, selector: { matchLabels: { version: v1 } } }
`;

describeWithKube("the restart of pods that have lost namespaces", () => {
  let kube: Kube;
  let mesh: Mesh;
  let runner: PodRunner;
  const probes: InformerProbe[] = [];

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    for (const name of ["team-a", MOVER]) await kubectl(kube.kubeconfig, ["create", "namespace", name]); // early, to be grown soon
    mesh = await startMesh({ kube });
    for (const name of ["team-a", MOVER]) await mesh.createFoo(name, "one", "first");
    await mesh.createNamespace("canary-eu");
    await mesh.apply(demoVirtualApp({ onLoss: "Restart" }));
    const options = { kube, client: mesh.client, namespace: NAMESPACE, lockName: APP.name };
    runner = startPodRunner({ ...options, manager: String(mesh.manager.ready.grpc) });
    await mesh.apply(injectedWorkload({ name: "foo", replicas: 3, version: "v1" }));
    await mesh.apply(injectedWorkload({ name: "foo-canary", replicas: 2, version: "v2" }));
    await eventually(async () => expect(await readyPods()).toHaveLength(5), 60_000);
    await eventually(async () => expect(await leaderOf("v1")).toBeDefined(), 20_000);
    await eventually(async () => expect(await leaderOf("v2")).toBeDefined(), 20_000);
    await untilGrown(mesh.client, MOVER);
  }, 180_000);
  afterAll(async () => {
    for (const probe of probes) await probe.stop();
    await runner?.stop();
    await mesh?.stop();
    await kube?.stop();
  });

  const livePods = async () => (await mesh.client.list(PODS, { namespace: NAMESPACE })).items;
  const readyPods = async () =>
    (await livePods()).filter(
      ({ metadata, status }) =>
        metadata.deletionTimestamp === undefined &&
        status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True"),
    );
  const podsOf = (version: string) => [...runner.pods.values()].filter(({ labels }) => labels.version === version);
  const uidsOf = async (version: string) =>
    (await livePods()).flatMap(({ metadata }) => (metadata.labels?.version === version ? [metadata.uid ?? ""] : [])).sort();
  const leaderOf = async (version: string) => {
    const name = version === "v1" ? "foo-operator" : "foo-operator---v2";
    const lease = await mesh.client.get(LEASES, { namespace: NAMESPACE, name });
    const holder = lease.spec?.holderIdentity ?? "";
    return podsOf(version).find((pod) => holder.startsWith(`${pod.name}_`))?.name;
  };
  const status = async () => (await mesh.client.get(VIRTUAL_APPS, APP)).status;
  const restart = async () => (await status())?.restart;
  const expectConverged = async () => {
    const now = await status();
    expect(now?.restart).toBeUndefined();
    expect(now?.conditions?.find(({ type }) => type === "Converged")).toMatchObject({ status: "True" });
  };
  const setPaused = (paused: boolean | null) =>
    mesh.client.patch(VIRTUAL_APPS, APP, { type: "merge", body: { spec: { route: { paused } } } });
  const expectReconciledBy = async (version: string) => {
    const { metadata } = await mesh.client.get(FOOS, { namespace: MOVER, name: "one" });
    const message = `${version} ${metadata.resourceVersion}`;
    await mesh.client.patch(FOOS, { namespace: MOVER, name: "one" }, { type: "merge", body: { spec: { message } } });
    const names = podsOf(version).map(({ name }) => name);
    await eventually(async () => {
      const foo = await mesh.foo(MOVER, "one");
      expect(foo.status?.observedGeneration).toBe(foo.metadata.generation);
      expect(names).toContain(foo.status?.reconciledBy);
    }, 20_000);
  };

  it("the restart waits for a PodDisruptionBudget, while the new owner works and the old pods read but do not write", async () => {
    await expectReconciledBy("v1");
    await mesh.apply(NO_EVICTION);
    await eventually(async () => {
      const pdb = await kubectl(kube.kubeconfig, [
        "get",
        "pdb",
        "none",
        "-n",
        NAMESPACE,
        "-o",
        "jsonpath={.status.expectedPods}",
      ]);
      expect(pdb).toBe("3");
    });
    for (const pod of podsOf("v1")) probes.push(await startInformerProbe(pod));
    await mesh.labelNamespace(MOVER, { "ns-type": "canary-1" });

    await eventually(async () => expect(await restart()).toMatchObject({ reason: "PodDisruptionBudget", left: 3 }), 20_000);
    expect((await restart())?.message).toContain("none");
    await expectReconciledBy("v2");
    for (const probe of probes) {
      expect((await probe.client.get(FOOS, { namespace: MOVER, name: "one" })).metadata.name).toBe("one");
      const body = { status: { message: "late" } };
      const write = probe.client.patch(
        FOOS,
        { namespace: MOVER, name: "one" },
        { type: "merge", body },
        { subresource: "status" },
      );
      await expect(write).rejects.toThrow(/subset "v2"/);
    }
    expect(evictions()).toEqual([]);
  }, 90_000);

  it("no pod is evicted while routes are paused, nor after the change is undone during the pause", async () => {
    const before = await uidsOf("v1");
    await setPaused(true);
    await eventually(async () => expect(await restart()).toMatchObject({ reason: "Paused", left: 3 }));
    await kubectl(kube.kubeconfig, ["delete", "pdb", "none", "-n", NAMESPACE]);
    await eventually(async () => expect(await restart()).toMatchObject({ reason: "Paused", left: 3 }));
    await mesh.labelNamespace(MOVER, { "ns-type": null });
    // The manager watches namespaces and VirtualApps separately, so the end of the pause must not overtake the undo.
    await eventually(async () => expect((await status())?.handover).toMatchObject({ phase: "Paused", namespaces: 1 }));
    await setPaused(null);
    // The canary loses the namespace again, so the canary's pods are restarted.
    const canary = await uidsOf("v2");
    await eventually(expectConverged, 60_000);
    expect(await uidsOf("v1")).toEqual(before);
    expect((await uidsOf("v2")).filter((uid) => canary.includes(uid))).toEqual([]);
    await expectReconciledBy("v1");
    for (const probe of probes) expect(probe.deleted).toEqual([]);
  }, 120_000);

  it("all pods are replaced one at a time, the leader last, and no pod sees an object deleted", async () => {
    await mesh.apply(NO_EVICTION);
    const old = podsOf("v1");
    const canary = await uidsOf("v2");
    const leader = await leaderOf("v1");
    const done = evictions().length;
    await mesh.labelNamespace(MOVER, { "ns-type": "canary-1" });
    await eventually(async () => expect(await restart()).toMatchObject({ reason: "PodDisruptionBudget" }), 20_000);
    const readyCounts = watchReady(
      async () => (await readyPods()).filter(({ metadata }) => metadata.labels?.version === "v1").length,
    );
    await kubectl(kube.kubeconfig, ["delete", "pdb", "none", "-n", NAMESPACE]);
    await eventually(expectConverged, 120_000);

    expect(Math.min(...readyCounts.stop())).toBe(2);
    const now = await uidsOf("v1");
    expect(now).toHaveLength(3);
    for (const { uid } of old) expect(now).not.toContain(uid);
    const order = evictions().slice(done);
    expect([...order].sort()).toEqual(old.map(({ name }) => name).sort());
    expect(order.at(-1)).toBe(leader);
    expect(await uidsOf("v2")).toEqual(canary);
    for (const probe of probes) expect(probe.deleted).toEqual([]);
    await expectReconciledBy("v2");
  }, 180_000);

  it("a new manager continues the restart of a killed manager", async () => {
    const old = podsOf("v2");
    const leader = await leaderOf("v2");
    const done = evictions().length;
    await mesh.labelNamespace(MOVER, { "ns-type": null });
    await eventually(() => expect(evictions().length).toBe(done + 1), { withinMs: 20_000, everyMs: 5 });
    await mesh.killManager();
    const readyCounts = watchReady(
      async () => (await readyPods()).filter(({ metadata }) => metadata.labels?.version === "v2").length,
    );
    await mesh.startManager();
    await eventually(expectConverged, 120_000);
    expect(Math.min(...readyCounts.stop())).toBe(1);
    const order = evictions().slice(done);
    expect([...order].sort()).toEqual(old.map(({ name }) => name).sort());
    expect(order.at(-1)).toBe(leader);
    await expectReconciledBy("v1");
  }, 180_000);

  it("the writes of two subsets in a namespace never interleave, and every restart has an event", async () => {
    const versions = new Map<string, string>();
    for (const { pod } of mesh.podWrites()) versions.set(pod, pod.startsWith("foo-canary") ? "v2" : "v1");
    const writers = mesh
      .podWrites()
      .filter(({ namespace, code }) => namespace === MOVER && code < 300)
      .map(({ pod }) => versions.get(pod));
    const turns = writers.filter((writer, index) => writer !== writers[index - 1]);
    expect(turns).toEqual(["v1", "v2", "v1", "v2", "v1"]);
    const events = (await mesh.client.list(EVENTS, { namespace: NAMESPACE })).items;
    const restartEvents = events.filter(({ reason }) => reason === "RestartedPod");
    const evicted = events.filter(({ reason }) => reason === "EvictedPod");
    expect(new Set(evicted.map(({ involvedObject }) => involvedObject.kind))).toEqual(new Set(["Pod", "ReplicaSet"]));
    expect(events.filter(({ reason }) => reason === "MovingNamespaces")).not.toEqual([]);
    // One event for each pod, but the killed manager may have evicted one pod without an event.
    expect(restartEvents.length).toBeGreaterThanOrEqual(7);
  });

  itNightly(
    "a workload that is scaled down meanwhile does not stop the restart",
    async () => {
      const deployment = ["deployment", "foo", "-n", NAMESPACE];
      await mesh.apply(NO_EVICTION);
      const old = await uidsOf("v1");
      await mesh.labelNamespace(MOVER, { "ns-type": "canary-1" });
      await eventually(async () => expect(await restart()).toMatchObject({ reason: "PodDisruptionBudget", left: 3 }), 20_000);
      // A finalizer keeps the first pod's object, so that the workload does not replace that pod before it is scaled down.
      const ref = { namespace: NAMESPACE, name: (await restart())?.pod ?? "" };
      const keep = (finalizers: string[]) => mesh.client.patch(PODS, ref, { type: "merge", body: { metadata: { finalizers } } });
      await keep(["test.ctrlmesh.io/keep"]);
      await kubectl(kube.kubeconfig, ["delete", "pdb", "none", "-n", NAMESPACE]);
      await eventually(async () => expect((await mesh.client.get(PODS, ref)).metadata.deletionTimestamp).toBeDefined(), 30_000);
      await kubectl(kube.kubeconfig, ["scale", ...deployment, "--replicas=2"]);
      await eventually(async () => expect(await readyPods()).toHaveLength(4), 30_000);
      await keep([]);
      await eventually(async () => expect(await restart()).toMatchObject({ reason: "NotReady", expected: 3, left: 2 }), 20_000);
      await eventually(expectConverged, 120_000);
      const now = await uidsOf("v1");
      expect(now).toHaveLength(2);
      expect(now.filter((uid) => old.includes(uid))).toEqual([]);
      await expectReconciledBy("v2");
    },
    180_000,
  );

  /** The pods whose eviction was accepted, in order. */
  function evictions(): string[] {
    return kube
      .audit()
      .filter(({ objectRef, responseStatus }) => objectRef?.subresource === "eviction" && responseStatus?.code === 201)
      .map(({ objectRef }) => objectRef?.name ?? "");
  }
});

/** Counts repeatedly until stop(). */
function watchReady(count: () => Promise<number>): { stop(): readonly number[] } {
  const seen: number[] = [];
  const stopping = new AbortController();
  void (async () => {
    while (!stopping.signal.aborted) {
      const now = await count().catch(() => undefined); // the test is over
      if (now === undefined) return;
      seen.push(now);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  return {
    stop() {
      stopping.abort();
      return seen;
    },
  };
}
