// An operator that runs already is taken into the mesh pod by pod, is divided, stands still while it is paused, and is let go again, on
// the real control plane with pods of real Deployments. The audit log is the judge: in what capacity a pod wrote is taken from the lock
// that it wrote last, not from what the mesh says of itself.
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
/** The namespaces with Foos, and whose they are by the rules. The last two are labelled in between. */
const NAMESPACES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "team-a": {},
  "team-b": LABEL,
  "canary-eu": {},
  mover: {},
  late: {},
};
const FOO_NAMES = ["one", "two"];

describeWithKube("an operator that runs already", () => {
  let kube: Kube;
  let mesh: Mesh;
  let runner: PodRunner;
  let bare: readonly string[];
  const probes: InformerProbe[] = [];
  const wishes = new Map<string, OwnerChange[]>(Object.keys(NAMESPACES).map((name) => [name, [{ sinceMs: 0, subset: "" }]]));
  const divided = new Set(["team-b", "canary-eu"]);
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
    bare = (await readyPods("v1")).map(({ metadata }) => metadata.name ?? "").sort();
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

  /** Edits one Foo after the other, all the time: whatever happens, none of it may be lost. @returns how many edits */
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
        status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True"),
    );
  const podsOf = (version: string) => [...runner.pods.values()].filter(({ labels }) => labels.version === version);
  const holderOf = async (lock: string) => {
    const lease = await mesh.client.get(LEASES, { namespace: NAMESPACE, name: lock });
    return lease.spec?.holderIdentity?.split("_")[0];
  };
  const status = async () => (await mesh.client.get(VIRTUAL_APPS, APP)).status;
  const condition = async (type: string) => (await status())?.conditions?.find((row) => row.type === type);
  const patchSpec = (spec: object) => mesh.client.patch(VIRTUAL_APPS, APP, { type: "merge", body: { spec } });
  /** From now on these namespaces may come to be the subset's. */
  const wish = (namespaces: Iterable<string>, subset: string) => {
    for (const namespace of namespaces) wishes.get(namespace)?.push({ sinceMs: Date.now(), subset });
  };
  /** A Foo that is edited from now on is done by one of these pods. */
  const isServedBy = async (namespace: string, version: string) => {
    const { metadata } = await editFoo(namespace, "one", `for ${version} ${Date.now()}`);
    await eventually(async () => {
      const { status: done } = await mesh.foo(namespace, "one");
      expect(done?.observedGeneration).toBeGreaterThanOrEqual(metadata.generation ?? 0);
      expect(podsOf(version).map(({ name }) => name)).toContain(done?.reconciledBy);
    }, 30_000);
  };
  const isDividedAndQuiet = async (withinMs: number) => {
    await eventually(async () => {
      expect((await status())?.restart).toBeUndefined();
      expect(await condition("Converged")).toMatchObject({ status: "True" });
      expect(await condition("TrafficIntercepted")).toMatchObject({ status: "True" });
      expect(await readyPods("v1")).toHaveLength(3);
      expect(await readyPods("v2")).toHaveLength(2);
    }, withinMs);
    for (const name of Object.keys(NAMESPACES)) await isServedBy(name, divided.has(name) ? "v2" : "v1");
  };
  const divide = async () => {
    wish(divided, CANARY);
    await mesh.apply(demoVirtualApp({ onLoss: "Restart" }));
  };
  /** Asks for the app's deletion as a user does. */
  const leave = (): Promise<KubectlResult> => {
    wish(divided, "");
    return tryKubectl(kube.kubeconfig, ["delete", "virtualapp", APP.name, "-n", NAMESPACE, "--wait", "--timeout=55s"]);
  };
  /** One leader by the lock's own name works on everything; the canary's pods ask for the same lock. */
  const isWhole = async () => {
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
  const nobodySawDeletions = () => {
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

  it("is left alone while its pods carry no proxy: the canary gets nothing, and the status names who holds it up", async () => {
    await divide();
    await mesh.apply(injectedWorkload({ name: "foo-canary", replicas: 2, version: "v2" }));
    await eventually(async () => expect(await readyPods("v2")).toHaveLength(2), 60_000);
    await eventually(
      async () => expect(podsOf("v2").map(({ name }) => name)).toContain(await holderOf("foo-operator---v2")),
      30_000,
    );

    for (const name of Object.keys(NAMESPACES)) await isServedBy(name, "v1");
    expect(fooWrites().filter(({ pod }) => !bare.includes(pod))).toEqual([]);
    // A manager that has just begun waits for a while for pods that may have been deleted before it led.
    await eventually(async () => {
      const { handover } = (await status()) ?? {};
      expect(handover).toMatchObject({ phase: "Draining", from: "default", to: CANARY });
      expect(handover?.waitingOn?.map(({ pod, reason }) => `${pod} ${reason}`).sort()).toEqual(
        bare.map((name) => `${name} NoProxy`),
      );
    }, 30_000);
    expect(await condition("TrafficIntercepted")).toMatchObject({ status: "False", reason: "PodsWithoutProxy" });
    expect((await condition("TrafficIntercepted"))?.message).toContain(bare[0]);
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

  it("is let go at once when the adoption is given up before it was divided, and can be adopted again", async () => {
    expect(await leave()).toMatchObject({ code: 0 });
    await isWhole();
    await divide();
    await eventually(async () => expect(await status()).toMatchObject({ handover: { phase: "Draining" } }), 20_000);
    for (const name of Object.keys(NAMESPACES)) await isServedBy(name, "v1");
  }, 120_000);

  it("is divided when it has been rolled pod by pod and the last one without a proxy is gone", async () => {
    await mesh.apply(injectedWorkload({ name: "foo", replicas: 3, version: "v1" }));
    await isDividedAndQuiet(120_000);
    const gone = auditOf("delete", "pods").filter(({ objectRef }) => bare.includes(objectRef?.name ?? ""));
    const lastGone = Math.max(...gone.map(({ stageTimestamp }) => Date.parse(stageTimestamp)));
    const canaries = fooWrites().filter(({ pod }) => pod.startsWith("foo-canary"));
    expect(canaries.length).toBeGreaterThan(0);
    expect(Math.min(...canaries.map(({ receivedMs }) => receivedMs))).toBeGreaterThan(lastGone);
    // Who has come since has lost nothing. The canary's pods had everything when the first adoption was given up.
    expect(evictions().filter((name) => !name.startsWith("foo-canary"))).toEqual([]);
  }, 240_000);

  it("keeps its namespaces while it is paused, and says how many", async () => {
    await patchSpec({ route: { paused: true } });
    await mesh.labelNamespace("mover", LABEL);
    await eventually(async () => {
      expect(await status()).toMatchObject({ namespaces: { kept: 1, moving: 0 }, handover: { phase: "Paused", namespaces: 1 } });
      expect(await condition("Converged")).toMatchObject({ status: "False", reason: "Paused" });
    }, 20_000);
    expect((await condition("Converged"))?.message).toContain("1 namespace stays with another owner");
    await isServedBy("mover", "v1");

    wish(["mover"], CANARY);
    divided.add("mover");
    await patchSpec({ route: { paused: null } });
    await isDividedAndQuiet(120_000);
    expect((await status())?.namespaces?.kept).toBeUndefined();
    expect((await status())?.lastHandover).toMatchObject({ from: "default", to: CANARY, namespaces: 1, result: "Moved" });
  }, 240_000);

  it("says so when a pod comes without a proxy: who has something keeps it, and what would move waits for that pod", async () => {
    const done = evictions();
    await probePods();
    await mesh.apply(injectedWorkload({ name: "foo-skipped", replicas: 1, version: "v0", isInjected: false }));
    await eventually(async () => expect(await readyPods("v0")).toHaveLength(1), 30_000);
    const skipped = podsOf("v0")[0];
    const pod = skipped?.name ?? "";
    // If it came to lead it would write everywhere, beside the canary: nobody can keep it from that. (It is woken to be ended.)
    skipped?.processes.operator?.kill("SIGSTOP");
    await eventually(async () => {
      expect(await condition("Ready")).toMatchObject({ status: "False", reason: "OwnershipConflict" });
      expect((await condition("Ready"))?.message).toContain(
        `pod ${pod} carries no proxy and may write to ${divided.size} namespaces`,
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
    await isServedBy("team-b", "v2");

    wish(["late"], CANARY);
    divided.add("late");
    await kubectl(kube.kubeconfig, ["delete", "deployment", "foo-skipped", "-n", NAMESPACE]);
    await isDividedAndQuiet(60_000);
    expect(await condition("Ready")).toMatchObject({ status: "True", reason: "InSync" });
    nobodySawDeletions();
    // Those that have lost a namespace.
    expect(
      evictions()
        .slice(done.length)
        .filter((name) => name.startsWith("foo-canary")),
    ).toEqual([]);
  }, 180_000);

  it("cannot be given another selector or lock", async () => {
    const patch = async (spec: object) => {
      const body = JSON.stringify({ spec });
      const args = ["patch", "virtualapp", APP.name, "-n", NAMESPACE, "--type", "merge", "-p", body];
      return tryKubectl(kube.kubeconfig, args);
    };
    const other = await patch({ selector: { matchLabels: { component: "other" } } });
    expect(other.code).toBe(1);
    expect(other.stderr).toContain(
      "spec.selector: Invalid value: cannot be changed: delete this VirtualApp, wait until it is gone, create it again",
    );
    for (const controller of [{ leaderElectionName: "other" }, null]) {
      const renamed = await patch({ configuration: { controller } });
      expect(renamed.code).toBe(1);
      expect(renamed.stderr).toContain(
        "the name of the operator's lock cannot be changed once it is set: delete this VirtualApp, wait until it is gone, create it again",
      );
    }
    const olderForm = { leaderElectionName: null, leaderElection: { lockName: APP.name } };
    expect(await patch({ configuration: { controller: olderForm } })).toMatchObject({ code: 0 });
  });

  it("is let go in order: what a stopped proxy may hold is waited for, then one leader has everything and nobody saw deletions", async () => {
    const done = evictions();
    await probePods();
    await patchSpec({ route: { paused: true } }); // which keeps nobody from leaving
    const leader = await holderOf("foo-operator---v2");
    const stopped = podsOf("v2").find(({ name }) => name === leader);
    expect(stopped).toBeDefined();
    stopped?.processes.proxy?.kill("SIGSTOP");
    const left = leave();
    await eventually(async () => {
      const app = await mesh.client.get(VIRTUAL_APPS, APP);
      expect(app.metadata.deletionTimestamp).toBeDefined();
      expect(app.status?.handover).toMatchObject({ phase: "Dissolving", to: "default" });
      expect(app.status?.handover?.waitingOn?.map(({ pod }) => pod)).toEqual([leader]);
    }, 30_000);
    const stoppedMs = Date.now(); // every other pod has let go
    expect(await condition("Converged")).toMatchObject({ status: "False", reason: "Dissolving" });
    // Longer than a lease: the canary's other pod comes to lead, which has let go and does nothing with it.
    await eventually(async () => expect(await holderOf("foo-operator---v2")).not.toBe(leader), 30_000);
    const ours = fooWrites().filter(({ namespace, receivedMs }) => divided.has(namespace) && receivedMs > stoppedMs);
    expect(ours).toEqual([]);
    expect((await mesh.client.get(VIRTUAL_APPS, APP)).status?.handover?.waitingOn?.map(({ pod }) => pod)).toEqual([leader]);
    stopped?.processes.proxy?.kill("SIGCONT");
    expect(await left).toMatchObject({ code: 0 });
    await isWhole();
    // Its proxies live on without an app, also from disk.
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
    await isWhole();
    nobodySawDeletions();
    expect(evictions()).toEqual(done);
  }, 180_000);

  it("is divided again when the VirtualApp is applied again", async () => {
    await divide();
    await isDividedAndQuiet(180_000);
    nobodySawDeletions();
  }, 300_000);

  it("is let go as well when its spec is one that only the manager refuses", async () => {
    await probePods();
    const matchLabels = { tier: "gold", region: "eu" };
    const match = [{ objectSelector: { matchLabels }, resources: [{ apiGroups: ["apps"], resources: ["deployments"] }] }];
    const { route } = (await mesh.client.get(VIRTUAL_APPS, APP)).spec;
    const subRules = (route?.subRules ?? []).map((rule) => ({ ...rule, match: [...rule.match, ...match] }));
    await patchSpec({ route: { subRules } });
    await eventually(async () => expect(await condition("Accepted")).toMatchObject({ status: "False", reason: "Invalid" }));
    for (const name of ["team-a", "team-b"]) await isServedBy(name, divided.has(name) ? "v2" : "v1");
    // A manager that has never seen a good spec learns the lock's name from the pods.
    await mesh.killManager();
    await mesh.startManager();

    expect(await leave()).toMatchObject({ code: 0 });
    await isWhole();
    nobodySawDeletions();
  }, 180_000);

  it("has its proxies taken out by rolling it", async () => {
    await mesh.apply(injectedWorkload({ name: "foo", replicas: 3, version: "v1", isInjected: false }));
    await mesh.apply(injectedWorkload({ name: "foo-canary", replicas: 2, version: "v2", isInjected: false }));
    await eventually(async () => {
      expect([...runner.pods.values()].filter(({ processes }) => processes.hasProxy)).toEqual([]);
      expect([await readyPods("v1"), await readyPods("v2")].map(({ length }) => length)).toEqual([3, 2]);
    }, 90_000);
    await isWhole();
  }, 150_000);

  it("loses no work, and no two writers ever stood side by side", async () => {
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
      ownersOf: (place) => wishes.get(place) ?? [],
    });
    expect(bySubset.violations.map(violationText)).toEqual([]);
    expect(bySubset.handovers).toBe(4 * 4);
    // What is always the default subset's goes from leader to leader of its lock, whatever pods these are.
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

  it("goes with its namespace", async () => {
    await divide();
    await eventually(async () => expect((await mesh.client.get(VIRTUAL_APPS, APP)).metadata.finalizers).toHaveLength(1));
    const args = ["delete", "namespace", NAMESPACE, "--wait", "--timeout=55s"];
    expect(await tryKubectl(kube.kubeconfig, args)).toMatchObject({ code: 0 });
  }, 90_000);
});
