// Connections to another cluster with every kind of credentials and address: kubectl, unmodified, through the sidecars of two pods. Both
// control planes are real. The owner's pod works, and the other pod is refused by its sidecar, whatever its credentials allow.
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { clusterReady, conditionsOf } from "../support/cluster-conditions.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { clusterOf, createKubeconfigs, proveHome } from "../support/kubeconfig-through.ts";
import { tryKubectl } from "../support/kubectl.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { newMeshCa } from "../support/mesh-identity.ts";
import { describeWithKube } from "../support/requirements.ts";

const NAMESPACE = "foo-system";
const PREFIX = "/k8s/clusters/c-1";

describeWithKube("credentials of another cluster", () => {
  const kubeconfigs = createKubeconfigs();
  let home: Kube;
  let eu: Kube;
  let mesh: Mesh;
  let gateway: Gateway;
  let owner: MeshPod;
  let other: MeshPod;
  let count = 0;

  const gatewayUrl = () => gateway.urlOf(PREFIX);
  const addPod = async (name: string, version: string) => {
    const pod = await mesh.addPod({ name, labels: { version }, egress: true });
    await proveHome(pod);
    return pod;
  };

  beforeAll(async () => {
    [home, eu] = await Promise.all([startKube(), startKube()]);
    gateway = await startGateway({ [PREFIX]: eu });
    mesh = await startMesh({ kube: home });
    const metadata = { namespace: NAMESPACE, name: "eu" };
    const spec = { servers: [eu.server, gatewayUrl()], clusterID: "c-eu", drainSeconds: 2 };
    await mesh.apply(stringify({ apiVersion: "ctrlmesh.kruise.io/v1alpha1", kind: "MeshCluster", metadata, spec }));
    const app = parse(demoVirtualApp());
    app.spec.route.subRules[0].match.push({ clusters: ["eu"] });
    await mesh.apply(stringify(app));
    other = await addPod("foo-0", "v1");
    owner = await addPod("canary-0", "v2");
    await clusterReady(mesh, metadata.name);
  }, 180_000);
  afterAll(async () => {
    await mesh?.stop();
    gateway?.close();
    for (const kube of [home, eu]) await kube?.stop();
    kubeconfigs.remove();
  });

  /** A kubeconfig of the cluster through the pod's forward proxy. */
  const kubeconfigOf = (pod: MeshPod, cluster: object, user: object) =>
    kubeconfigs.write({ ...cluster, "proxy-url": pod.egressUrl }, user);
  const direct = () => clusterOf(eu);
  const admin = () => parse(readFileSync(eu.kubeconfig, "utf8")).users[0].user;

  /** The owner's pod writes and watches; the other pod is refused, and nothing of it arrives. */
  async function expectOneWriter(cluster: object, user: object): Promise<void> {
    const create = (pod: MeshPod, name: string) =>
      tryKubectl(kubeconfigOf(pod, cluster, user), ["create", "configmap", name, "--request-timeout=20s"]);
    const [mine, foreign] = [`map-${count++}`, `map-${count++}`];
    expect(await create(owner, mine)).toMatchObject({ code: 0, stdout: expect.stringContaining("created") });
    expect(await create(other, foreign)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('cluster "eu" belongs to subset "v2"'),
    });
    const watched = ["get", "configmap", mine, "-o", "name", "--watch", "--request-timeout=2s"];
    expect((await tryKubectl(kubeconfigOf(owner, cluster, user), watched)).stdout).toContain(`configmap/${mine}`);
    const all = await tryKubectl(eu.kubeconfig, ["get", "configmaps", "-o", "name"]);
    expect(all.stdout).toContain(`configmap/${mine}`);
    expect(all.stdout).not.toContain(`configmap/${foreign}`);
  }

  it("may be a client certificate", async () => {
    expect(admin()).toHaveProperty("client-certificate-data");
    await expectOneWriter(direct(), admin());
  });

  it("may be a bearer token, for a server named by its address", async () => {
    expect(new URL(eu.server).hostname).toBe("127.0.0.1");
    await expectOneWriter(direct(), { token: eu.token });
  });

  it("may come from an exec plugin", async () => {
    const credential = { apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status: { token: eu.token } };
    const plugin = join(kubeconfigs.folder, "plugin.sh");
    writeFileSync(plugin, `#!/bin/sh\ncat <<'END'\n${JSON.stringify(credential)}\nEND\n`);
    chmodSync(plugin, 0o700);
    const exec = { apiVersion: credential.apiVersion, command: plugin, interactiveMode: "Never" };
    await expectOneWriter(direct(), { exec });
  });

  it("may be for a server whose URL has a path, as behind a gateway", async () => {
    await expectOneWriter({ server: gatewayUrl(), "insecure-skip-tls-verify": true }, { token: eu.token });
  });

  it("may be for a server that only a younger MeshCluster with the same clusterID lists", async () => {
    const metadata = { namespace: NAMESPACE, name: "eu-again" };
    const server = eu.server.replace("127.0.0.1", "localhost");
    const spec = { servers: [server], clusterID: "c-eu", drainSeconds: 2 };
    await mesh.apply(stringify({ apiVersion: "ctrlmesh.kruise.io/v1alpha1", kind: "MeshCluster", metadata, spec }));
    await eventually(async () => {
      expect((await conditionsOf(mesh, metadata.name)).Identified).toMatch(/^False /);
      expect((await conditionsOf(mesh, "eu")).Ready).toMatch(/^True /);
    }, 30_000);
    // The owner too waits for drainSeconds, since the other pod could write through this server before.
    const cluster = { server, "insecure-skip-tls-verify": true };
    const get = ["get", "namespaces", "--request-timeout=5s"];
    const getBy = (pod: MeshPod) => tryKubectl(kubeconfigOf(pod, cluster, { token: eu.token }), get);
    await eventually(async () => {
      expect((await getBy(other)).stderr).toContain('cluster "eu" belongs');
      expect(await getBy(owner)).toMatchObject({ code: 0 });
    }, 30_000);
    await expectOneWriter(cluster, { token: eu.token });
  });

  it("do not make a client trust another server: the sidecar leaves its TLS closed", async () => {
    const { certPem } = newMeshCa();
    const cluster = { server: eu.server, "certificate-authority-data": Buffer.from(certPem).toString("base64") };
    const get = ["get", "namespaces", "--request-timeout=20s"];
    const { code, stderr } = await tryKubectl(kubeconfigOf(owner, cluster, { token: eu.token }), get);
    expect([code, stderr]).toEqual([1, expect.stringContaining("certificate signed by unknown authority")]);
  });
});
