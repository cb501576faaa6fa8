// A running operator is adopted by the mesh pod by pod, divided into subsets, paused, and released, on the real control plane with pods
// of real Deployments. The audit log shows that ownership never overlaps. A pod's subset at a write follows from the lock that the pod
// wrote last, not from the mesh's own data.
import { afterAll, beforeAll, expect, it } from "vitest";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { LEASES, PODS } from "../../src/kube/client/resources.ts";
import { isStatus } from "../../src/kube/status.ts";
import { checkOwnership, type OwnerChange, violationText } from "../chaos/ownership-check.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { untilGrown } from "../support/grown-namespace.ts";
import { clientOfPod, type InformerProbe, startInformerProbe } from "../support/informer-probe.ts";
import { injectedWorkload } from "../support/injected-workload.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type KubectlResult, kubectl, tryKubectl } from "../support/kubectl.ts";
import { FOOS, type Mesh, startMesh } from "../support/mesh.ts";
import { type PodRunner, startPodRunner } from "../support/pod-runner.ts";
import { describeWithKube } from "../support/requirements.ts";

const NAMESPACE = "foo-system";
const APP = { namespace: NAMESPACE, name: "foo-operator" };
const CANARY = "v2";
const LABEL = { "ns-type": "canary-1" };
/** The namespaces with Foos, and the labels that the rules select by. The tests label the last two later. */
const NAMESPACES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "team-a": {},
  "team-b": LABEL,
  "canary-eu": {},
  mover: {},
  late: {},
};
const FOO_NAMES = ["one", "two"];

describeWithKube("a running operator", () => {
  let kube: Kube;
  let mesh: Mesh;
  let runner: PodRunner;
  let podsWithoutProxy: readonly string[];
  const probes: InformerProbe[] = [];
  const ownerChanges = new Map<string, OwnerChange[]>(
    Object.keys(NAMESPACES).map((name) => [name, [{ sinceMs: 0, subset: "" }]]),
  );
  const canaryNamespaces = new Set(["team-b", "canary-eu"]);
  const editing = new AbortController();
  let editor: Promise<number> | undefined;

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    mesh = await startMesh({ kube });
    for (const [name, labels] of Object.entries(NAMESPACES)) {
      await mesh.createNamespace(name, labels);
      for (const foo of FOO_NAMES) await mesh.createFoo(name, foo, "first");
    }
    const options = { kube, client: mesh.client, namespace: NAMESPACE, lockName: APP.name };
    runner = startPodRunner({ ...options, manager: mesh.managerAddress });
    await mesh.apply(injectedWorkload({ name: "foo", replicas: 3, version: "v1", isInjected: false }));
    await eventually(async () => expect(await readyPods("v1")).toHaveLength(3), 60_000);
    await eventually(everyFooIsDone, 60_000);
    podsWithoutProxy = (await readyPods("v1")).map(({ metadata }) => metadata.name ?? "").sort();
    editor = editFoos(editing.signal);
  }, 240_000);
  afterAll(async () => {
    editing.abort();
    await editor;
    for (const probe of probes) await probe.stop();
    await runner?.stop();
    await mesh?.stop();
    await kube?.stop();
  });

  /** Edits one Foo after another until the signal. No edit may be lost. @returns the number of edits */
  async function editFoos(signal: AbortSignal): Promise<number> {
    const foos = Object.keys(NAMESPACES).flatMap((namespace) => FOO_NAMES.map((name) => ({ namespace, name })));
    let count = 0;
    for (; !signal.aborted; count++) {
      const foo = foos[count % foos.length];
      if (foo !== undefined) await editFoo(foo.namespace, foo.name, `edit ${count}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return count;
  }
  const editFoo = (namespace: string, name: string, message: string) =>
    mesh.client.patch(FOOS, { namespace, name }, { type: "merge", body: { spec: { message } } });
  const everyFooIsDone = async () => {
    const { items } = await mesh.client.list(FOOS);
    for (const { metadata, status } of items) expect(status?.observedGeneration).toBe(metadata.generation);
    return items;
  };
  const readyPods = async (version: string) =>
    (await mesh.client.list(PODS, { namespace: NAMESPACE, labelSelector: `version=${version}` })).items.filter(
      ({ metadata, status }) =>
        metadata.deletionTimestamp === undefined &&
        status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True"),
    );
  const podsOf = (version: string) => [...runner.pods.values()].filter(({ labels }) => labels.version === version);
  const holderOf = async (lock: string) => {
    const lease = await mesh.client.get(LEASES, { namespace: NAMESPACE, name: lock });
    return lease.spec?.holderIdentity?.split("_")[0];
  };
  const status = async () => (await mesh.client.get(VIRTUAL_APPS, APP)).status;
  const condition = async (type: string) => (await status())?.conditions?.find((row) => row.type === type);
  const patchSpec = (spec: object) => mesh.client.patch(VIRTUAL_APPS, APP, { type: "merge", body: { spec } });
  /** From now on the subset may become the owner of these namespaces. */
  const allowOwner = (namespaces: Iterable<string>, subset: string) => {
    for (const namespace of namespaces) ownerChanges.get(namespace)?.push({ sinceMs: Date.now(), subset });
  };
  /** Edits a Foo and waits until a pod of this version reconciles it. */
  const expectServedBy = async (namespace: string, version: string) => {
    const { metadata } = await editFoo(namespace, "one", `for ${version} ${Date.now()}`);
    await eventually(async () => {
      const { status: done } = await mesh.foo(namespace, "one");
      expect(done?.observedGeneration).toBeGreaterThanOrEqual(metadata.generation ?? 0);
      expect(podsOf(version).map(({ name }) => name)).toContain(done?.reconciledBy);
    }, 30_000);
  };
  const expectDivided = async (withinMs: number) => {
    await eventually(async () => {
      expect((await status())?.restart).toBeUndefined();
      expect(await condition("Converged")).toMatchObject({ status: "True" });
      expect(await condition("TrafficIntercepted")).toMatchObject({ status: "True" });
      expect(await readyPods("v1")).toHaveLength(3);
      expect(await readyPods("v2")).toHaveLength(2);
    }, withinMs);
    for (const name of Object.keys(NAMESPACES)) await expectServedBy(name, canaryNamespaces.has(name) ? "v2" : "v1");
  };
  const applyVirtualApp = async () => {
    allowOwner(canaryNamespaces, CANARY);
    await mesh.apply(demoVirtualApp({ onLoss: "Restart" }));
  };
  /** Deletes the VirtualApp as a user does. */
  const deleteVirtualApp = (): Promise<KubectlResult> => {
    allowOwner(canaryNamespaces, "");
    return tryKubectl(kube.kubeconfig, ["delete", "virtualapp", APP.name, "-n", NAMESPACE, "--wait", "--timeout=55s"]);
  };
  /** The VirtualApp is gone, and one leader by the lock's own name reconciles every Foo. */
  const expectUndivided = async () => {
    await expect(mesh.client.get(VIRTUAL_APPS, APP)).rejects.toSatisfy((error: unknown) => isStatus(error, "NotFound"));
    await eventually(async () => {
      const leader = await holderOf(APP.name);
      for (const { metadata, status: done } of (await mesh.client.list(FOOS)).items) {
        expect(done?.reconciledBy, `${metadata.namespace}/${metadata.name}`).toBe(leader);
      }
    }, 40_000);
  };
  const probePods = async () => {
    for (const probe of probes.splice(0)) await probe.stop();
    for (const pod of runner.pods.values()) probes.push(await startInformerProbe(pod));
  };
  const expectNoDeletionsSeen = () => {
    for (const { pod, deleted } of probes) expect({ pod, deleted }).toEqual({ pod, deleted: [] });
  };
  const auditOf = (verb: string, resource: string, subresource?: string) =>
    kube
      .audit()
      .filter(
        ({ verb: is, objectRef, responseStatus }) =>
          is === verb &&
          objectRef?.resource === resource &&
          objectRef.subresource === subresource &&
          (responseStatus?.code ?? 0) < 300,
      );
  /** The pods that the manager has evicted. */
  const evictions = () => auditOf("create", "pods", "eviction").map(({ objectRef }) => objectRef?.name ?? "");
  const fooWrites = () => mesh.podWrites().filter(({ namespace }) => namespace in NAMESPACES);

  it("keeps all its namespaces while its pods have no proxy, and the status names those pods", async () => {
    await applyVirtualApp();
    await mesh.apply(injectedWorkload({ name: "foo-canary", replicas: 2, version: "v2" }));
    await eventually(async () => expect(await readyPods("v2")).toHaveLength(2), 60_000);
    await eventually(
      async () => expect(podsOf("v2").map(({ name }) => name)).toContain(await holderOf("foo-operator---v2")),
      30_000,
    );

    for (const name of Object.keys(NAMESPACES)) await expectServedBy(name, "v1");
    expect(fooWrites().filter(({ pod }) => !podsWithoutProxy.includes(pod))).toEqual([]);
    // A manager that has just started first waits for pods that may have been deleted before it led.
    await eventually(async () => {
      const { handover } = (await status()) ?? {};
      expect(handover).toMatchObject({ phase: "Draining", from: "default", to: CANARY });
      expect(handover?.waitingOn?.map(({ pod, reason }) => `${pod} ${reason}`).sort()).toEqual(
        podsWithoutProxy.map((name) => `${name} NoProxy`),
      );
    }, 30_000);
    expect(await condition("TrafficIntercepted")).toMatchObject({ status: "False", reason: "PodsWithoutProxy" });
    expect((await condition("TrafficIntercepted"))?.message).toContain(podsWithoutProxy[0]);
    expect(await condition("Converged")).toMatchObject({ status: "False", reason: "PodsWithoutProxy" });
    for (const pod of podsOf("v2")) {
      const client = clientOfPod(pod);
      expect((await client.list(FOOS)).items).toEqual([]);
      const foo = { namespace: "team-b", name: "one" };
      const body = { status: { message: "early" } };
      const write = client.patch(FOOS, foo, { type: "merge", body }, { subresource: "status", maxRetries: 0 });
      await expect(write).rejects.toThrow(/a handover runs: namespace "team-b" moves to subset "v2"/);
      await client.close();
    }
  }, 180_000);

  it("is released at once if the VirtualApp is deleted before the division, and can be adopted again", async () => {
    expect(await deleteVirtualApp()).toMatchObject({ code: 0 });
    await expectUndivided();
    await applyVirtualApp();
    await eventually(async () => expect(await status()).toMatchObject({ handover: { phase: "Draining" } }), 20_000);
    for (const name of Object.keys(NAMESPACES)) await expectServedBy(name, "v1");
  }, 120_000);

  it("is divided once a rollout has replaced the last pod without a proxy", async () => {
    await mesh.apply(injectedWorkload({ name: "foo", replicas: 3, version: "v1" }));
    await expectDivided(120_000);
    const gone = auditOf("delete", "pods").filter(({ objectRef }) => podsWithoutProxy.includes(objectRef?.name ?? ""));
    const lastGoneMs = Math.max(...gone.map(({ stageTimestamp }) => Date.parse(stageTimestamp)));
    const canaries = fooWrites().filter(({ pod }) => pod.startsWith("foo-canary"));
    expect(canaries.length).toBeGreaterThan(0);
    expect(Math.min(...canaries.map(({ receivedMs }) => receivedMs))).toBeGreaterThan(lastGoneMs);
    // New pods have lost no namespaces. The canary's pods owned everything after the first VirtualApp was deleted.
    expect(evictions().filter((name) => !name.startsWith("foo-canary"))).toEqual([]);
  }, 240_000);

  it("keeps its namespaces while its routes are paused, and the status counts the kept namespaces", async () => {
    await patchSpec({ route: { paused: true } });
    await mesh.labelNamespace("mover", LABEL);
    await eventually(async () => {
      expect(await status()).toMatchObject({ namespaces: { kept: 1, moving: 0 }, handover: { phase: "Paused", namespaces: 1 } });
      expect(await condition("Converged")).toMatchObject({ status: "False", reason: "Paused" });
    }, 20_000);
    expect((await condition("Converged"))?.message).toContain("1 namespace stays with another owner");
    await expectServedBy("mover", "v1");

    // 1 % is less than one namespace, so the move waits for a confirmation.
    await patchSpec({ route: { paused: null, maxMovingPercent: 1 } });
    await eventually(async () => {
      expect(await condition("Converged")).toMatchObject({ status: "False", reason: "ConfirmationRequired" });
    }, 20_000);
    expect(await condition("Ready")).toMatchObject({ status: "True", reason: "ConfirmationRequired" });
    const [, annotation = "", generation = ""] =
      /annotation (\S+)=(\d+),/.exec((await condition("Converged"))?.message ?? "") ?? [];
    await expectServedBy("mover", "v1");

    allowOwner(["mover"], CANARY);
    canaryNamespaces.add("mover");
    const metadata = { annotations: { [annotation]: generation } };
    await mesh.client.patch(VIRTUAL_APPS, APP, { type: "merge", body: { metadata } });
    await expectDivided(120_000);
    await patchSpec({ route: { maxMovingPercent: null } });
    expect((await status())?.namespaces?.kept).toBeUndefined();
    expect((await status())?.lastHandover).toMatchObject({ from: "default", to: CANARY, namespaces: 1, result: "Moved" });
  }, 240_000);

  it("stays divided when a pod without a proxy appears, while namespaces wait to move and the conditions name that pod", async () => {
    const done = evictions();
    await probePods();
    await mesh.apply(injectedWorkload({ name: "foo-skipped", replicas: 1, version: "v0", isInjected: false }));
    await eventually(async () => expect(await readyPods("v0")).toHaveLength(1), 30_000);
    const skipped = podsOf("v0")[0];
    const pod = skipped?.name ?? "";
    // As the leader this pod would write everywhere, beside the canary. Nothing prevents that, so the test suspends its operator.
    skipped?.processes.operator?.kill("SIGSTOP");
    await eventually(async () => {
      expect(await condition("Ready")).toMatchObject({ status: "False", reason: "OwnershipConflict" });
      expect((await condition("Ready"))?.message).toContain(
        `pod ${pod} carries no proxy and may write to ${canaryNamespaces.size} namespaces`,
      );
      expect((await condition("TrafficIntercepted"))?.message).toContain(`pod ${pod} carries no proxy and may write everything`);
      expect(await condition("Converged")).toMatchObject({ status: "False", reason: "PodsWithoutProxy" });
    }, 20_000);
    await untilGrown(mesh.client, "late");
    await mesh.labelNamespace("late", LABEL);
    await eventually(async () => {
      expect((await status())?.handover).toMatchObject({
        phase: "Draining",
        waitingOn: [{ namespace: "late", pod, reason: "NoProxy" }],
      });
    }, 20_000);
    await expectServedBy("team-b", "v2");

    allowOwner(["late"], CANARY);
    canaryNamespaces.add("late");
    await kubectl(kube.kubeconfig, ["delete", "deployment", "foo-skipped", "-n", NAMESPACE]);
    await expectDivided(60_000);
    expect(await condition("Ready")).toMatchObject({ status: "True", reason: "InSync" });
    expectNoDeletionsSeen();
    // The canary's pods have gained a namespace and lost none.
    expect(
      evictions()
        .slice(done.length)
        .filter((name) => name.startsWith("foo-canary")),
    ).toEqual([]);
  }, 180_000);

  it("cannot get another selector or lock name", async () => {
    const patch = async (spec: object) => {
      const body = JSON.stringify({ spec });
      const args = ["patch", "virtualapp", APP.name, "-n", NAMESPACE, "--type", "merge", "-p", body];
      return tryKubectl(kube.kubeconfig, args);
    };
    const other = await patch({ selector: { matchLabels: { component: "other" } } });
    expect(other.code).toBe(1);
    expect(other.stderr).toContain("cannot be changed: delete this VirtualApp, wait until it is deleted, and create it again");
    for (const controller of [{ leaderElectionName: "other" }, null]) {
      const renamed = await patch({ configuration: { controller } });
      expect(renamed.code).toBe(1);
      expect(renamed.stderr).toContain(
        "the name of the operator's lock cannot be changed once it is set: delete this VirtualApp, wait until it is deleted, and create it again",
      );
    }
    const olderForm = { leaderElectionName: null, leaderElection: { lockName: APP.name } };
    expect(await patch({ configuration: { controller: olderForm } })).toMatchObject({ code: 0 });
  });

  it("is released only after a suspended proxy has given its namespaces up, and then has one leader", async () => {
    const done = evictions();
    await probePods();
    await patchSpec({ route: { paused: true } }); // a pause does not prevent the release
    const leader = await holderOf("foo-operator---v2");
    const stopped = podsOf("v2").find(({ name }) => name === leader);
    expect(stopped).toBeDefined();
    stopped?.processes.proxy?.kill("SIGSTOP");
    const deleted = deleteVirtualApp();
    await eventually(async () => {
      const app = await mesh.client.get(VIRTUAL_APPS, APP);
      expect(app.metadata.deletionTimestamp).toBeDefined();
      expect(app.status?.handover).toMatchObject({ phase: "Dissolving", to: "default" });
      expect(app.status?.handover?.waitingOn?.map(({ pod }) => pod)).toEqual([leader]);
    }, 30_000);
    const stoppedMs = Date.now(); // every other pod has given its namespaces up
    expect(await condition("Converged")).toMatchObject({ status: "False", reason: "Dissolving" });
    // After one lease the canary's other pod leads. That pod has already given its namespaces up, so it writes nothing.
    await eventually(async () => expect(await holderOf("foo-operator---v2")).not.toBe(leader), 30_000);
    const canaryWrites = fooWrites().filter(
      ({ namespace, receivedMs }) => canaryNamespaces.has(namespace) && receivedMs > stoppedMs,
    );
    expect(canaryWrites).toEqual([]);
    expect((await mesh.client.get(VIRTUAL_APPS, APP)).status?.handover?.waitingOn?.map(({ pod }) => pod)).toEqual([leader]);
    stopped?.processes.proxy?.kill("SIGCONT");
    expect(await deleted).toMatchObject({ code: 0 });
    await expectUndivided();
    // The proxies keep working without an app, also after a restart from disk.
    const [first] = podsOf("v2");
    first?.processes.proxy?.kill("SIGKILL");
    for (const { client } of probes) {
      await eventually(async () => {
        const { items } = await client.list(FOOS);
        expect(items).toHaveLength(FOO_NAMES.length * Object.keys(NAMESPACES).length);
        const lock = await client.get(LEASES, { namespace: NAMESPACE, name: APP.name });
        expect(lock.spec?.holderIdentity?.split("_")[0]).toBe(await holderOf(APP.name));
      }, 30_000);
    }
    await eventually(async () => expect(await readyPods("v2")).toHaveLength(2), 30_000);
    await expectUndivided();
    expectNoDeletionsSeen();
    expect(evictions()).toEqual(done);
  }, 180_000);

  it("is divided again when the VirtualApp is applied again", async () => {
    await applyVirtualApp();
    await expectDivided(180_000);
    expectNoDeletionsSeen();
  }, 300_000);

  it("is released also with a spec that only the manager refuses", async () => {
    await probePods();
    const matchLabels = { tier: "gold", region: "eu" };
    const match = [{ objectSelector: { matchLabels }, resources: [{ apiGroups: ["apps"], resources: ["deployments"] }] }];
    const { route } = (await mesh.client.get(VIRTUAL_APPS, APP)).spec;
    const subRules = (route?.subRules ?? []).map((rule) => ({ ...rule, match: [...rule.match, ...match] }));
    await patchSpec({ route: { subRules } });
    await eventually(async () => expect(await condition("Accepted")).toMatchObject({ status: "False", reason: "Invalid" }));
    for (const name of ["team-a", "team-b"]) await expectServedBy(name, canaryNamespaces.has(name) ? "v2" : "v1");
    // A manager that has never seen a valid spec learns the lock's name from the pods.
    await mesh.killManager();
    await mesh.startManager();

    expect(await deleteVirtualApp()).toMatchObject({ code: 0 });
    await expectUndivided();
    expectNoDeletionsSeen();
  }, 180_000);

  it("loses its proxies by a rollout", async () => {
    await mesh.apply(injectedWorkload({ name: "foo", replicas: 3, version: "v1", isInjected: false }));
    await mesh.apply(injectedWorkload({ name: "foo-canary", replicas: 2, version: "v2", isInjected: false }));
    await eventually(async () => {
      expect([...runner.pods.values()].filter(({ processes }) => processes.hasProxy)).toEqual([]);
      expect([await readyPods("v1"), await readyPods("v2")].map(({ length }) => length)).toEqual([3, 2]);
    }, 90_000);
    await expectUndivided();
  }, 150_000);

  it("has reconciled every edit, and no namespace ever had two writers at once", async () => {
    editing.abort();
    expect(await editor).toBeGreaterThan(100);
    await eventually(everyFooIsDone, 40_000);
    const writes = mesh.podWrites();
    const terms = writes.filter(({ resource, code }) => resource === "leases" && code < 300);
    const lockOf = (pod: string, atMs: number) =>
      terms.findLast((term) => term.pod === pod && term.answeredMs <= atMs)?.name ?? "no lock";
    const subsetOfLock: Readonly<Record<string, string>> = { "foo-operator": "", "foo-operator---v2": CANARY };
    const bySubset = checkOwnership({
      writes,
      subsetOf: (pod, atMs) => subsetOfLock[lockOf(pod, atMs)] ?? "a pod without a lock",
      placeOf: ({ namespace }) => (namespace in NAMESPACES ? namespace : undefined),
      ownersOf: (place) => ownerChanges.get(place) ?? [],
    });
    expect(bySubset.violations.map(violationText)).toEqual([]);
    expect(bySubset.handovers).toBe(4 * 4);
    // A namespace that always belongs to the default subset goes from each leader of its lock to the next.
    const leaders = terms
      .filter(({ name }) => name === APP.name)
      .filter(({ pod }, index, all) => pod !== all[index - 1]?.pod)
      .map(({ pod, receivedMs }) => ({ subset: pod, sinceMs: receivedMs }));
    const byPod = checkOwnership({
      writes,
      subsetOf: (pod) => pod,
      placeOf: ({ namespace }) => (namespace === "team-a" ? namespace : undefined),
      ownersOf: () => leaders,
    });
    expect(byPod.violations.map(violationText)).toEqual([]);
  }, 90_000);

  it("is released when its namespace is deleted", async () => {
    await applyVirtualApp();
    await eventually(async () => expect((await mesh.client.get(VIRTUAL_APPS, APP)).metadata.finalizers).toHaveLength(1));
    await kubectl(kube.kubeconfig, ["delete", "namespace", NAMESPACE, "--wait=false"]);
    // The namespace itself stays for some seconds more, since its controller looks again 8 s after it has met a finalizer.
    await eventually(async () => {
      await expect(mesh.client.get(VIRTUAL_APPS, APP)).rejects.toSatisfy((error: unknown) => isStatus(error, "NotFound"));
    }, 55_000);
  }, 90_000);
});
