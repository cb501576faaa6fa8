// The two reports of the first controller mesh's users, as tests. One: after a change of the route only the leader was brought up to date,
// and the others went on with the old one. The other, a lock named as its namespace, has a file of its own:
// lock-named-as-namespace.test.ts.
import { afterAll, beforeAll, expect, it } from "vitest";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { LEASES } from "../../src/kube/client/resources.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { FOOS, type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe } from "../support/probe.ts";
import { describeWithKube } from "../support/requirements.ts";

const APP = { namespace: "foo-system", name: "foo-operator" };

describeWithKube("after a change of the route", () => {
  let kube: Kube;
  let mesh: Mesh;
  let defaults: MeshPod[];
  let canaries: MeshPod[];

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    mesh = await startMesh({ kube, restarts: true });
    for (const name of ["team-a", "team-b", "canary-eu"]) await mesh.createNamespace(name);
    await mesh.apply(demoVirtualApp());
    const add = async (names: readonly string[], version: string) => {
      const pods: MeshPod[] = [];
      for (const name of names) pods.push(await mesh.addPod({ name, labels: { version }, operator: true }));
      return pods;
    };
    defaults = await add(["foo-0", "foo-1", "foo-2"], "v1");
    canaries = await add(["foo-canary-0", "foo-canary-1"], "v2");
    for (const namespace of ["team-a", "team-b"]) await mesh.createFoo(namespace, "one", "before");
    await eventually(async () => expect(await reconciledBy("team-b")).toMatch(/^foo-\d$/), 30_000);
  });
  afterAll(async () => {
    await mesh?.stop();
    await kube?.stop();
  });

  const reconciledBy = async (namespace: string) => (await mesh.foo(namespace, "one")).status?.reconciledBy ?? "";
  const leaderOf = async (pods: readonly MeshPod[], lock: string) => {
    const lease = await mesh.client.get(LEASES, { namespace: APP.namespace, name: lock });
    return pods.find(({ name }) => lease.spec?.holderIdentity?.startsWith(`${name}_`));
  };
  /** Whether a pod is shown team-b's Foo, and may write there; asked with rights that RBAC does not narrow. */
  const standingOf = async (pod: MeshPod) => {
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

  it("every pod takes it, the leader and those that wait alike, without a restart of any", async () => {
    const pids = [...defaults, ...canaries].map((pod) => pod.proxy.pid);
    for (const pod of defaults) expect(await standingOf(pod), pod.name).toEqual({ sees: true, writes: 200 });
    for (const pod of canaries) expect(await standingOf(pod), pod.name).toEqual({ sees: false, writes: 403 });
    await mesh.labelNamespace("team-b", { "ns-type": "canary-1" });
    for (const pod of defaults) {
      await eventually(async () => expect(await standingOf(pod), pod.name).toEqual({ sees: false, writes: 403 }));
    }
    for (const pod of canaries) {
      await eventually(async () => expect(await standingOf(pod), pod.name).toEqual({ sees: true, writes: 200 }));
    }
    expect([...defaults, ...canaries].map((pod) => pod.proxy.pid)).toEqual(pids);
    await eventually(async () => expect(await reconciledBy("team-b")).toMatch(/^foo-canary-\d$/), 20_000);
    await eventually(async () => {
      const { status } = await mesh.client.get(VIRTUAL_APPS, APP);
      expect(status?.proxies).toMatchObject({ total: 5, synced: 5 });
    });
  });

  it("whoever leads next goes by it, on both sides", async () => {
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
    const others = (pods: readonly MeshPod[], gone: MeshPod | undefined) =>
      pods.filter((pod) => pod !== gone).map(({ name }) => name);
    await eventually(async () => expect(others(defaults, oldDefault)).toContain(await reconciledBy("team-a")), 30_000);
    await eventually(async () => expect(others(canaries, oldCanary)).toContain(await reconciledBy("team-b")), 30_000);
    const strangers = mesh
      .podWrites()
      .slice(writesBefore)
      .filter(({ namespace, pod }) => (namespace === "team-b") !== pod.startsWith("foo-canary") && namespace.startsWith("team-"));
    expect(strangers).toEqual([]);
  });
});
