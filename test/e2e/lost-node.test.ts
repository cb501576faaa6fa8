// A lost node on the real control plane. The pod is removed by force while its proxy and its operator still run, and the API server
// accepts their token for some seconds. The audit log shows that the new owner's first write comes after the old pod's last.
import { afterAll, beforeAll, expect, it } from "vitest";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { CONFIG_MAPS, LEASES } from "../../src/kube/client/resources.ts";
import { checkOwnership, violationText } from "../chaos/ownership-check.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe } from "../support/probe.ts";
import { describeWithKube } from "../support/requirements.ts";

const SUBSETS: Readonly<Record<string, string>> = { "foo-0": "", "foo-1": "", "canary-0": "v2" };
const LEASE = { namespace: "ctrlmesh-system", name: "ctrlmesh-manager" };

describeWithKube("a pod that is removed by force while its processes still run", () => {
  let kube: Kube;
  let mesh: Mesh;
  let next: MeshPod;
  const probes: Probe[] = [];

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true, tokenCacheMs: 6_000 });
    mesh = await startMesh({ kube, managers: 2 });
    await mesh.apply(demoVirtualApp());
    next = await mesh.addPod({ name: "canary-0", labels: { version: "v2" } });
  }, 120_000);
  afterAll(async () => {
    for (const probe of probes) await probe.close();
    await mesh?.stop();
    await kube?.stop();
  });

  const writer = (pod: MeshPod, namespace: string) => {
    const probe = createProbe({ url: pod.proxyUrl, caPem: pod.proxyCaPem, token: pod.token });
    probes.push(probe);
    const path = `/api/v1/namespaces/${namespace}/configmaps/shared`;
    return async () => (await probe.send("PATCH", path, { data: { by: pod.name } })).status;
  };

  /** Removes a pod by force and moves its namespace to the canary, while both pods write. */
  async function moveWhileBothWrite(name: string, namespace: string, meanwhile: () => Promise<void>): Promise<void> {
    await mesh.createNamespace(namespace);
    const old = await mesh.addPod({ name, labels: { version: "v1" }, operator: true });
    await mesh.client.create(CONFIG_MAPS, { metadata: { name: "shared", namespace } });
    const [byOld, byNext] = [writer(old, namespace), writer(next, namespace)];
    await eventually(async () => expect([await byOld(), await byNext()]).toEqual([200, 403]), 30_000);

    const sinceMs = Date.now();
    await old.deleteObject();
    await meanwhile();
    await mesh.labelNamespace(namespace, { "ns-type": "canary-1" });
    const answers: number[] = [];
    const both = async () => {
      const [oldStatus, nextStatus] = await Promise.all([byOld(), byNext()]);
      answers.push(oldStatus);
      return nextStatus;
    };
    await eventually(async () => expect(await both()).toBe(200), { withinMs: 40_000, everyMs: 50 });
    for (let again = 0; again < 20; again++) await both();

    expect(answers[0]).toBe(200); // the API server must accept the token after the removal, or the test shows nothing
    const { violations, handovers } = checkOwnership({
      writes: mesh.podWrites().filter((write) => write.code < 400 && write.namespace === namespace),
      subsetOf: (pod) => SUBSETS[pod],
      ownersOf: () => [
        { sinceMs: 0, subset: "" },
        { sinceMs, subset: "v2" },
      ],
    });
    expect(violations.map(violationText)).toEqual([]);
    expect(handovers).toBe(1);
  }

  it("keeps its claims while the API server may accept its token", async () => {
    const waits = async () => {
      const { status } = await mesh.client.get(VIRTUAL_APPS, { namespace: mesh.appNamespace, name: mesh.appName });
      return status?.handover?.waitingOn?.map(({ pod, reason }) => `${pod} ${reason}`);
    };
    const moved = moveWhileBothWrite("foo-0", "team-a", async () => undefined);
    await eventually(async () => expect(await waits()).toEqual(["foo-0 PodGone"]), 40_000);
    await moved;
  }, 120_000);

  it("keeps its claims even if the leading manager is killed at the same time", async () => {
    await moveWhileBothWrite("foo-1", "team-b", async () => {
      const holder = (await mesh.client.get(LEASES, LEASE)).spec?.holderIdentity?.split("_")[0];
      await mesh.managers[Number(holder?.split("-").at(-1))]?.crash();
    });
  }, 120_000);
});
