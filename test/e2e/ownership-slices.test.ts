// OwnershipSlices on the real control plane: what users and other programs read, and what becomes of the slices when somebody edits or deletes
// them, when the manager fails over, when they cannot be written, and when the app is deleted.
import { afterAll, beforeAll, expect, it } from "vitest";
import { type OwnershipSlice, SLICE_APP_LABEL } from "../../src/api/ownership-slice.ts";
import { OWNERSHIP_SLICES, VIRTUAL_APPS } from "../../src/api/resources.ts";
import { EVENTS } from "../../src/kube/client/resources.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { helmTemplate } from "../support/helm.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { describeWithKube } from "../support/requirements.ts";

const NAMESPACE = "foo-system";
const APP = { namespace: NAMESPACE, name: "foo-operator" };
const CANARY = { "ns-type": "canary-1" };

describeWithKube("the OwnershipSlices of an app", () => {
  let kube: Kube;
  let mesh: Mesh;
  let pod: MeshPod;
  const run = (...args: string[]) => kubectl(kube.kubeconfig, args);

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    mesh = await startMesh({ kube, managers: 2 });
    for (const name of ["team-a", "team-b"]) await mesh.createNamespace(name);
    await run("create", "quota", "no-slices", "-n", NAMESPACE, "--hard=count/ownershipslices.ctrlmesh.kruise.io=0");
    await mesh.apply(demoVirtualApp());
    pod = await mesh.addPod({ name: "foo-0", labels: { version: "v1" } });
    await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } });
  });
  afterAll(async () => {
    await mesh?.stop();
    await kube?.stop();
  });

  const slices = async () => (await mesh.client.list(OWNERSHIP_SLICES, { namespace: NAMESPACE })).items;
  const entryOf = async (namespace: string) =>
    (await slices()).flatMap(({ ownership }) => ownership).find(({ namespaces }) => namespaces?.includes(namespace));
  const expectOwner = (namespace: string, subset: string) =>
    eventually(async () => expect(await entryOf(namespace)).toMatchObject({ state: "Owned", owners: [{ subset }] }), 60_000);

  it("that cannot be written delay no handover, and an Event says why, until they can", async () => {
    await mesh.labelNamespace("team-a", CANARY);
    await eventually(async () => {
      const { status } = await mesh.client.get(VIRTUAL_APPS, APP);
      expect(status?.subsets).toMatchObject([{ name: "default" }, { name: "v2", namespaces: 1 }]);
      expect(status?.conditions?.find(({ type }) => type === "Converged")).toMatchObject({ status: "True" });
    }, 20_000);
    await eventually(async () => {
      const { items } = await mesh.client.list(EVENTS, { namespace: NAMESPACE });
      const event = items.find(({ reason }) => reason === "OwnershipNotPublished");
      expect(event).toMatchObject({
        type: "Warning",
        involvedObject: { kind: "VirtualApp" },
        message: expect.stringContaining("quota: no-slices"),
      });
    });
    expect(await slices()).toEqual([]);
    await run("delete", "quota", "no-slices", "-n", NAMESPACE);
    await expectOwner("team-a", "v2");
    await mesh.labelNamespace("team-a", { "ns-type": null });
    await expectOwner("team-a", "default");
  }, 90_000);

  it("show who owns each place, with columns, to whoever may view", async () => {
    await expectOwner("team-b", "default");
    const [slice] = await slices();
    expect(slice?.metadata).toMatchObject({
      name: "foo-operator-0",
      labels: { [SLICE_APP_LABEL]: APP.name },
      ownerReferences: [{ kind: "VirtualApp", name: APP.name, controller: true }],
    });
    expect(slice?.ownership.find(({ clusterScope }) => clusterScope)?.owners).toEqual([{ subset: "default" }]);
    const places = slice?.places;
    await kubectl(kube.kubeconfig, ["apply", "-f", "-"], await helmTemplate("{}", "-s", "templates/user-roles.yaml"));
    await run("create", "rolebinding", "viewer", "-n", NAMESPACE, "--clusterrole=view", "--user=vera");
    await eventually(async () => {
      const text = await run("get", "oslice", "-n", NAMESPACE, "--as=vera");
      expect(
        text
          .trim()
          .split("\n")
          .map((line) => line.split(/ +/).slice(0, 4)),
      ).toEqual([
        ["NAME", "APP", "PLACES", "MOVING"],
        ["foo-operator-0", "foo-operator", String(places), "0"],
      ]);
    });
    await expect(run("delete", "oslice", "foo-operator-0", "-n", NAMESPACE, "--as=vera")).rejects.toThrow("forbidden");
  });

  it("show a namespace that moves, from where and since when", async () => {
    const before = (await entryOf("team-b"))?.since ?? "";
    pod.processes.proxy.pause(); // it acknowledges no loss
    try {
      await mesh.labelNamespace("team-b", CANARY);
      await eventually(async () =>
        expect(await entryOf("team-b")).toMatchObject({ state: "Moving", from: ["default"], owners: [{ subset: "v2" }] }),
      );
      expect(await run("get", "oslice", "-n", NAMESPACE, "-o", "jsonpath={.items[0].moving}")).toBe("1");
    } finally {
      pod.processes.proxy.resume();
    }
    await expectOwner("team-b", "v2");
    expect(((await entryOf("team-b"))?.since ?? "") > before).toBe(true);
  });

  it("are put right after an edit, a deletion and a lie, with the times that they had", async () => {
    const before = await content();
    const patch = (body: object) =>
      run("patch", "oslice", "foo-operator-0", "-n", NAMESPACE, "--type=merge", "-p", JSON.stringify(body));
    const expectRight = () => eventually(async () => expect(await content()).toEqual(before));
    await patch({ ownership: [], places: 0 });
    await expectRight();
    await patch({ metadata: { ownerReferences: null, labels: null } });
    await expectRight();
    await run("delete", "oslice", "foo-operator-0", "-n", NAMESPACE);
    await expectRight();
    const [slice] = await slices();
    const metadata = { namespace: NAMESPACE, name: "lie", labels: slice?.metadata.labels ?? {} };
    await mesh.client.create(OWNERSHIP_SLICES, { ...(slice as OwnershipSlice), metadata });
    await expectRight();
  }, 60_000);

  it("keep their times when another manager leads, which goes on writing them", async () => {
    const before = await content();
    await mesh.killManager();
    await eventually(async () => {
      const lease = await run(
        "get",
        "lease",
        "ctrlmesh-manager",
        "-n",
        "ctrlmesh-system",
        "-o",
        "jsonpath={.spec.holderIdentity}",
      );
      expect(lease).toContain("ctrlmesh-manager-1");
    }, 30_000);
    await mesh.createNamespace("team-late");
    await expectOwner("team-late", "default");
    const after = (await content()).flatMap(({ ownership }) => ownership);
    for (const { since, namespaces = [] } of before.flatMap(({ ownership }) => ownership)) {
      for (const name of namespaces) expect(after.find((each) => each.namespaces?.includes(name))?.since).toBe(since);
    }
  }, 90_000);

  it("are written only when something changes, and deleted with the app", async () => {
    await run("delete", "virtualapp", APP.name, "-n", NAMESPACE, "--timeout=60s");
    await eventually(async () => expect(await slices()).toEqual([]), 30_000);
    const writes = kube
      .audit()
      .filter(
        ({ objectRef, userAgent }) => objectRef?.resource === "ownershipslices" && userAgent?.startsWith("ctrlmesh-manager/"),
      );
    expect(writes.length).toBeLessThan(40);
  }, 120_000);

  async function content() {
    const withoutVersions = (await slices()).map(({ metadata, ...rest }) => ({
      ...rest,
      name: metadata.name,
      labels: metadata.labels,
      owners: metadata.ownerReferences,
    }));
    expect(withoutVersions).not.toEqual([]);
    return withoutVersions;
  }
});
