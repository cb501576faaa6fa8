// The whole of it on the real control plane: one operator, unchanged, divided between two subsets. Judged by the state of
// the world and by the API server's audit log.
import { afterAll, beforeAll, expect, it } from "vitest";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { LEASES } from "../../src/kube/client/resources.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { describeWithKube } from "../support/requirements.ts";

const DEFAULT_NAMESPACES = ["team-a", "team-b"];
const CANARY_NAMESPACES = ["canary-eu", "team-c"];

describeWithKube("a VirtualApp divides a running operator", () => {
  let kube: Kube;
  let mesh: Mesh;
  let defaults: MeshPod[];
  let canary: MeshPod;

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    mesh = await startMesh({ kube });
    for (const name of DEFAULT_NAMESPACES) await mesh.createNamespace(name);
    await mesh.createNamespace("canary-eu");
    await mesh.createNamespace("team-c", { "ns-type": "canary-1" });
    await mesh.apply(demoVirtualApp());
    defaults = [];
    for (const name of ["foo-0", "foo-1"]) defaults.push(await mesh.addPod({ name, labels: { version: "v1" }, operator: true }));
    canary = await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" }, operator: true });
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
      await eventually(async () => expect(await reconciledBy(namespace)).toBe("foo-canary-0"), 20_000);
    }
    expect(writesOutsideOfSlice()).toEqual([]);
    const writers = new Set(mesh.podWrites().map(({ pod, resource }) => `${pod} ${resource}`));
    expect([...writers]).toEqual(
      expect.arrayContaining(["foo-canary-0 foos/status", "foo-canary-0 configmaps", "foo-canary-0 leases"]),
    );
  });

  it("two leaders at once hold two Leases, NAME and NAME---v2", async () => {
    const lease = async (name: string) =>
      (await mesh.client.get(LEASES, { namespace: "foo-system", name })).spec?.holderIdentity ?? "";
    expect(await lease("foo-operator")).toMatch(/^foo-\d_/);
    expect(await lease("foo-operator---v2")).toMatch(/^foo-canary-0_/);
    await eventually(async () => {
      const { status } = await mesh.client.get(VIRTUAL_APPS, { namespace: "foo-system", name: "foo-operator" });
      expect(status?.subsets).toMatchObject([
        { name: "default", lock: "foo-operator", leader: expect.stringMatching(/^foo-\d$/), namespaces: expect.any(Number) },
        { name: "v2", lock: "foo-operator---v2", leader: "foo-canary-0", namespaces: 2 },
      ]);
      expect(status?.conditions?.find(({ type }) => type === "Ready")).toMatchObject({ status: "True" });
    });
  });

  it("a namespace created later with a canary label or name is never touched by the default subset", async () => {
    await mesh.createNamespace("canary-late");
    await mesh.createFoo("canary-late", "one", "MARK-canary-late");
    await mesh.createNamespace("late", { "ns-type": "canary-1" });
    await mesh.createFoo("late", "one", "MARK-late");
    await mesh.createNamespace("late-default");
    await mesh.createFoo("late-default", "one", "MARK-late-default");
    for (const namespace of ["canary-late", "late"]) {
      await eventually(async () => expect(await reconciledBy(namespace)).toBe("foo-canary-0"));
    }
    await eventually(async () => expect(await reconciledBy("late-default")).toMatch(/^foo-\d$/));
    expect(writesOutsideOfSlice()).toEqual([]);
  });

  it("the default subset's leader may die and another of its pods takes over, the canary untouched", async () => {
    const holder = (await mesh.client.get(LEASES, { namespace: "foo-system", name: "foo-operator" })).spec?.holderIdentity ?? "";
    const leader = defaults.find(({ name }) => holder.startsWith(name));
    const other = defaults.find((pod) => pod !== leader);
    await leader?.remove();
    await mesh.createFoo("team-a", "after", "MARK-team-a");
    await eventually(async () => expect(await reconciledBy("team-a", "after")).toBe(other?.name), 20_000);
    expect(await reconciledBy("canary-eu")).toBe("foo-canary-0");
    expect(writesOutsideOfSlice()).toEqual([]);
  });

  const CANARY = new Set([...CANARY_NAMESPACES, "canary-late", "late"]);
  function writesOutsideOfSlice() {
    const locks = (name: string) => name === "foo-operator" || name === "foo-operator---v2";
    return mesh.podWrites().filter(({ pod, namespace, resource, name, code }) => {
      if (code >= 400) return false;
      const isCanary = pod === canary.name;
      if (resource === "leases" && namespace === "foo-system" && locks(name)) return (name === "foo-operator---v2") !== isCanary;
      return CANARY.has(namespace) !== isCanary;
    });
  }
});
