// A bug of OpenKruise Controller Mesh: if a lock had the name of its namespace, the namespace in the path was renamed too.
import { afterAll, beforeAll, expect, it } from "vitest";
import { LEASES } from "../../src/kube/client/resources.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe } from "../support/probe.ts";
import { describeWithKube } from "../support/requirements.ts";

const NAME = "cafeextcontroller";
const PROTOBUF = "application/vnd.kubernetes.protobuf";

describeWithKube("a lock with the name of its namespace", () => {
  let kube: Kube;
  let mesh: Mesh;
  let canary: MeshPod;
  let probe: Probe;

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    mesh = await startMesh({ kube, appNamespace: NAME, appName: NAME });
    await mesh.createNamespace("canary-eu");
    await mesh.apply(demoVirtualApp({ namespace: NAME, name: NAME }));
    await mesh.addPod({ name: "cafe-0", labels: { version: "v1" }, operator: true });
    canary = await mesh.addPod({ name: "cafe-canary-0", labels: { version: "v2" }, operator: true });
    probe = createProbe({ url: canary.proxyUrl, caPem: canary.proxyCaPem, token: kube.token });
  });
  afterAll(async () => {
    await probe?.close();
    await mesh?.stop();
    await kube?.stop();
  });

  const holder = async (name: string) => (await mesh.client.get(LEASES, { namespace: NAME, name })).spec?.holderIdentity ?? "";
  const path = `/apis/coordination.k8s.io/v1/namespaces/${NAME}/leases`;

  it("is renamed in the last path segment only, and both subsets lead", async () => {
    await eventually(async () => expect(await holder(NAME)).toMatch(/^cafe-0_/), 20_000);
    await eventually(async () => expect(await holder(`${NAME}---v2`)).toMatch(/^cafe-canary-0_/), 20_000);
    const namespaces = new Set(
      mesh
        .podWrites()
        .filter(({ resource }) => resource === "leases")
        .map(({ namespace }) => namespace),
    );
    expect([...namespaces]).toEqual([NAME]);
  });

  it.each(["application/json", PROTOBUF])("has its own name in the operator's gets, lists and watches in %s", async (accept) => {
    const got = await probe.get(`${path}/${NAME}`, { accept });
    expect(got.status).toBe(200);
    const listed = await probe.get(`${path}?fieldSelector=metadata.name%3D${NAME}`, { accept });
    const watched = await probe.stream(`${path}?watch=1&fieldSelector=metadata.name%3D${NAME}`, { accept });
    await eventually(() => expect(watched.bytes().includes("cafe-canary-0_")).toBe(true));
    for (const bytes of [got.body, listed.body, watched.bytes()]) {
      expect(bytes.includes("cafe-canary-0_")).toBe(true);
      expect(bytes.includes("---v2")).toBe(false);
      expect(bytes.includes("cafe-0_")).toBe(false);
    }
  });

  it("cannot be written under another subset's name", async () => {
    const { status, body } = await probe.send("PATCH", `${path}/${NAME}---v3`, { spec: { holderIdentity: "thief" } });
    expect(status).toBe(403);
    expect(body.toString()).toContain("ctrlmesh:");
  });

  it("has the operator's name in error messages", async () => {
    const { status, body } = await probe.send("POST", path, {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: NAME },
    });
    expect(status).toBe(409);
    expect(body.toString()).toContain(`\\"${NAME}\\" already exists`);
    expect(body.toString()).not.toContain("---v2");
  });
});
