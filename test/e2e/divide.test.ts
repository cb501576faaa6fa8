// One unchanged operator, divided into two subsets on the real control plane. The tests check the objects and the API server's audit log.
// The last tests cover a bug of OpenKruise Controller Mesh: after a change of the route only the leader got the new route.
import { afterAll, beforeAll, expect, it } from "vitest";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { EVENTS, LEASES } from "../../src/kube/client/resources.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { FOOS, type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe } from "../support/probe.ts";
import { describeWithKube } from "../support/requirements.ts";

const APP = { namespace: "foo-system", name: "foo-operator" };
const DEFAULT_NAMESPACES = ["team-a", "team-b"];
const CANARY_NAMESPACES = ["canary-eu", "team-c"];

describeWithKube("a VirtualApp divides a running operator", () => {
  let kube: Kube;
  let mesh: Mesh;
  let defaults: MeshPod[];
  let canaries: MeshPod[];

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    mesh = await startMesh({ kube, restarts: true });
    for (const name of DEFAULT_NAMESPACES) await mesh.createNamespace(name);
    await mesh.createNamespace("canary-eu");
    await mesh.createNamespace("team-c", { "ns-type": "canary-1" });
    await mesh.apply(demoVirtualApp());
    const add = (names: readonly string[], version: string) =>
      Promise.all(names.map((name) => mesh.addPod({ name, labels: { version }, operator: true })));
    defaults = await add(["foo-0", "foo-1"], "v1");
    canaries = await add(["foo-canary-0", "foo-canary-1"], "v2");
    for (const namespace of [...DEFAULT_NAMESPACES, ...CANARY_NAMESPACES]) {
      for (const name of ["one", "two"]) await mesh.createFoo(namespace, name, `MARK-${namespace}`);
    }
  });
  afterAll(async () => {
    await mesh?.stop();
    await kube?.stop();
  });

  const reconciledBy = async (namespace: string, name = "one") => (await mesh.foo(namespace, name)).status?.reconciledBy ?? "";

  it("each subset reconciles its own namespaces and no others", async () => {
    for (const namespace of DEFAULT_NAMESPACES) {
      await eventually(async () => expect(await reconciledBy(namespace)).toMatch(/^foo-\d$/), 20_000);
    }
    for (const namespace of CANARY_NAMESPACES) {
      await eventually(async () => expect(await reconciledBy(namespace)).toMatch(/^foo-canary-\d$/), 20_000);
    }
    expect(writesOutsideOfSlice()).toEqual([]);
    const writers = new Set(mesh.podWrites().map(({ pod, resource }) => `${pod} ${resource}`));
    expect([...writers]).toEqual(
      expect.arrayContaining(
        ["foos/status", "configmaps", "leases"].map((resource) => expect.stringMatching(`^foo-canary-\\d ${resource}$`)),
      ),
    );
  });

  it("two leaders at once hold two Leases, NAME and NAME---v2", async () => {
    const lease = async (name: string) =>
      (await mesh.client.get(LEASES, { namespace: "foo-system", name })).spec?.holderIdentity ?? "";
    expect(await lease("foo-operator")).toMatch(/^foo-\d_/);
    expect(await lease("foo-operator---v2")).toMatch(/^foo-canary-\d_/);
    await eventually(async () => {
      const { status } = await mesh.client.get(VIRTUAL_APPS, APP);
      expect(status?.subsets).toMatchObject([
        { name: "default", lock: "foo-operator", leader: expect.stringMatching(/^foo-\d$/), namespaces: expect.any(Number) },
        { name: "v2", lock: "foo-operator---v2", leader: expect.stringMatching(/^foo-canary-\d$/), namespaces: 2 },
      ]);
      expect(status?.conditions?.find(({ type }) => type === "Ready")).toMatchObject({ status: "True" });
    });
  });

  it("a canary's Events about its lock and its pod pass in the default subset's namespace, and no other write does", async () => {
    const [pod] = canaries;
    if (pod === undefined) throw new Error("no canary");
    const probe = createProbe({ url: pod.proxyUrl, caPem: pod.proxyCaPem, token: kube.token });
    const subject = { namespace: APP.namespace, apiVersion: "v1", kind: "Pod", name: pod.name };
    const lease = { ...subject, apiVersion: "coordination.k8s.io/v1", kind: "Lease", name: APP.name };
    const core = `/api/v1/namespaces/${APP.namespace}/events`;
    const metadata = (name: string) => ({ name, namespace: APP.namespace });
    const create = (involvedObject: object, name: string) =>
      probe.send("POST", core, { metadata: metadata(name), involvedObject });
    try {
      // What client-go's recorder has written in the canary's name.
      await eventually(async () => {
        const { items } = await mesh.client.list(EVENTS, { namespace: APP.namespace });
        expect(items.map(({ message }) => message)).toContainEqual(expect.stringMatching(/^foo-canary-\d_\S+ became leader$/));
      });
      expect((await create(lease, "foo-operator.1")).status).toBe(201);
      expect((await create(subject, `${pod.name}.1`)).status).toBe(201);
      const { status } = await probe.send("POST", `/apis/events.k8s.io/v1/namespaces/${APP.namespace}/events`, {
        metadata: metadata("foo-operator.2"),
        eventTime: "2026-01-01T00:00:00.000000Z",
        action: "Elect",
        reason: "LeaderElection",
        type: "Normal",
        reportingController: "foo",
        reportingInstance: pod.name,
        regarding: lease,
      });
      expect(status).toBe(201);
      expect((await probe.send("PATCH", `${core}/foo-operator.1`, { count: 2 })).status).toBe(200);
      const refused = [
        await create({ ...subject, name: "foo-0" }, "foo-0.1"),
        await probe.send("PATCH", `${core}/foo-operator.1`, { involvedObject: { name: "other" } }),
        await probe.send("DELETE", `${core}/foo-operator.1`),
        await probe.send("POST", `/api/v1/namespaces/${APP.namespace}/configmaps`, { metadata: { name: "x" } }),
      ];
      expect(refused.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
    } finally {
      await probe.close();
    }
  });

  it("a namespace created later with a canary label or name is never touched by the default subset", async () => {
    await mesh.createNamespace("canary-late");
    await mesh.createFoo("canary-late", "one", "MARK-canary-late");
    await mesh.createNamespace("late", { "ns-type": "canary-1" });
    await mesh.createFoo("late", "one", "MARK-late");
    await mesh.createNamespace("late-default");
    await mesh.createFoo("late-default", "one", "MARK-late-default");
    for (const namespace of ["canary-late", "late"]) {
      await eventually(async () => expect(await reconciledBy(namespace)).toMatch(/^foo-canary-\d$/));
    }
    await eventually(async () => expect(await reconciledBy("late-default")).toMatch(/^foo-\d$/));
    expect(writesOutsideOfSlice()).toEqual([]);
  });

  const CANARY = new Set([...CANARY_NAMESPACES, "canary-late", "late"]);
  function writesOutsideOfSlice() {
    const locks = (name: string) => name === "foo-operator" || name === "foo-operator---v2";
    return mesh.podWrites().filter(({ pod, namespace, resource, name, code }) => {
      if (code >= 400) return false;
      const isCanary = pod.startsWith("foo-canary");
      if (resource === "leases" && namespace === "foo-system" && locks(name)) return (name === "foo-operator---v2") !== isCanary;
      if (resource === "events" && namespace === "foo-system") return false; // its electors' and those that a test sends
      return CANARY.has(namespace) !== isCanary;
    });
  }

  const leaderOf = async (pods: readonly MeshPod[], lock: string) => {
    const lease = await mesh.client.get(LEASES, { namespace: APP.namespace, name: lock });
    return pods.find(({ name }) => lease.spec?.holderIdentity?.startsWith(`${name}_`));
  };
  /** Whether a pod can see and write team-b's Foo. The probe is a cluster administrator, so that RBAC refuses nothing. */
  const accessOf = async (pod: MeshPod) => {
    const probe = createProbe({ url: pod.proxyUrl, caPem: pod.proxyCaPem, token: kube.token });
    try {
      const list = await probe.get("/apis/demo.ctrlmesh.io/v1/foos");
      const path = "/apis/demo.ctrlmesh.io/v1/namespaces/team-b/foos/one";
      const write = await probe.send("PATCH", path, { metadata: { annotations: { by: pod.name } } });
      return { sees: list.body.toString().includes('"namespace":"team-b"'), writes: write.status };
    } finally {
      await probe.close();
    }
  };

  it("each subset works on while no manager runs, also behind a proxy that starts again then", async () => {
    await mesh.killManager();
    await canaries[0]?.restartProxy();
    for (const namespace of ["team-a", "canary-eu"]) await mesh.createFoo(namespace, "alone", "without a manager");
    await eventually(async () => expect(await reconciledBy("team-a", "alone")).toMatch(/^foo-\d$/), 20_000);
    await eventually(async () => expect(await reconciledBy("canary-eu", "alone")).toMatch(/^foo-canary-\d$/), 40_000);
    expect(writesOutsideOfSlice()).toEqual([]);
    await mesh.startManager();
  });

  it("every pod takes the new route without a restart, not only the leader", async () => {
    const pids = [...defaults, ...canaries].map((pod) => pod.proxy.pid);
    for (const pod of defaults) expect(await accessOf(pod), pod.name).toEqual({ sees: true, writes: 200 });
    for (const pod of canaries) expect(await accessOf(pod), pod.name).toEqual({ sees: false, writes: 403 });
    await mesh.labelNamespace("team-b", { "ns-type": "canary-1" });
    for (const pod of defaults) {
      await eventually(async () => expect(await accessOf(pod), pod.name).toEqual({ sees: false, writes: 403 }));
    }
    for (const pod of canaries) {
      await eventually(async () => expect(await accessOf(pod), pod.name).toEqual({ sees: true, writes: 200 }));
    }
    expect([...defaults, ...canaries].map((pod) => pod.proxy.pid)).toEqual(pids);
    await eventually(async () => expect(await reconciledBy("team-b")).toMatch(/^foo-canary-\d$/), 20_000);
    await eventually(async () => {
      const { status } = await mesh.client.get(VIRTUAL_APPS, APP);
      expect(status?.proxies).toMatchObject({ total: 4, synced: 4 });
    });
  });

  it("the next leader of each subset follows the new route after the old leader is removed", async () => {
    const [oldDefault, oldCanary] = [await leaderOf(defaults, APP.name), await leaderOf(canaries, `${APP.name}---v2`)];
    expect(oldDefault, "the default subset's leader").toBeDefined();
    expect(oldCanary, "v2's leader").toBeDefined();
    await oldDefault?.remove();
    await oldCanary?.remove();
    const writesBefore = mesh.podWrites().length;
    const patch = { type: "merge", body: { spec: { message: "after" } } } as const;
    for (const namespace of ["team-a", "team-b"]) {
      await mesh.client.patch(FOOS, { namespace, name: "one" }, patch);
    }
    const remaining = (pods: readonly MeshPod[], gone: MeshPod | undefined) =>
      pods.filter((pod) => pod !== gone).map(({ name }) => name);
    await eventually(async () => expect(remaining(defaults, oldDefault)).toContain(await reconciledBy("team-a")), 30_000);
    await eventually(async () => expect(remaining(canaries, oldCanary)).toContain(await reconciledBy("team-b")), 30_000);
    const unexpectedWrites = mesh
      .podWrites()
      .slice(writesBefore)
      .filter(({ namespace }) => namespace.startsWith("team-"))
      .filter(({ namespace, pod }) => ["team-b", "team-c"].includes(namespace) !== pod.startsWith("foo-canary"));
    expect(unexpectedWrites).toEqual([]);
  });
});
