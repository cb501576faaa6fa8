// The mesh's identity on the real control plane: real tokens by TokenRequest, and two managers as processes that share one CA and publish
// its trust. kube-apiserver reviews the tokens. test/integration/manager/identity.test.ts covers impostors.
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { credentials, status } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createKubeClient } from "../../src/kube/client/client.ts";
import { CONFIG_MAPS, LEASES, PODS, SECRETS } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { isStatus } from "../../src/kube/status.ts";
import { type Child, startChild } from "../support/child-process.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { FOOS, podObject, prepareCluster, SERVICE_ACCOUNTS } from "../support/mesh/cluster.ts";
import { programMain } from "../support/programs.ts";
import { describeWithKube } from "../support/requirements.ts";
import { type Access, certify, openProxy, registrationOf } from "../support/scripted-proxy.ts";
import { handshake } from "../support/tls-handshake.ts";

const NAMESPACE = "foo-system";
const APP = "foo-operator";
const SERVER_NAME = "ctrlmesh-manager.ctrlmesh-system.svc";

describeWithKube("the mesh's identity", () => {
  let kube: Kube;
  let client: KubeClient;
  let managers: Child[] = [];
  /** A request of a pod that the first tests remove. */
  let ofRemovedPod: { readonly at: string; readonly key: Buffer; readonly given: Access } | undefined;

  const startManager = (name: string) =>
    startChild({
      name,
      command: process.execPath,
      args: [
        programMain("manager"),
        "--print-ready",
        "--kubeconfig",
        kube.kubeconfig,
        "--pod-name",
        name,
        "--grpc-listen",
        "127.0.0.1:0",
        "--health-listen",
        "127.0.0.1:0",
        "--lease-duration-ms",
        "5000",
        "--identity",
        "mesh",
        "--ca-settle-ms",
        "3000",
        "--log-level",
        "debug",
        "--server-names",
        "127.0.0.1",
      ],
    });
  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    client = createKubeClient({ server: kube.server, caPem: kube.caPem, token: () => kube.token, userAgent: "ctrlmesh-test" });
    await prepareCluster(kube, NAMESPACE);
    managers = await Promise.all(["ctrlmesh-manager-0", "ctrlmesh-manager-1"].map(startManager));
    await kubectl(kube.kubeconfig, ["apply", "-f", "-"], demoVirtualApp());
  });
  afterAll(async () => {
    await Promise.all(managers.map((manager) => manager.stop()));
    await client?.close();
    await kube?.stop();
  });

  const published = async (key: string) =>
    (await client.get(CONFIG_MAPS, { namespace: NAMESPACE, name: "ctrlmesh-ca" })).data?.[key] ?? "";
  const secret = () => client.get(SECRETS, { namespace: "ctrlmesh-system", name: "ctrlmesh-ca" });
  const endpoints = () => managers.map(({ ready }) => String(ready.grpc));
  const metrics = async () => {
    const pages = managers.map(async ({ ready }) => (await fetch(`${String(ready.health)}/metrics`)).text());
    return (await Promise.all(pages)).join("");
  };
  const addPod = async (name: string) => {
    const { spec, ...pod } = podObject(NAMESPACE, APP, name, {});
    const sidecar = { name: "ctrlmesh-proxy", image: "example.invalid/proxy" };
    const { metadata } = await client.create(PODS, {
      ...pod,
      spec: { ...spec, containers: [...(spec?.containers ?? []), sidecar] },
    });
    return { namespace: NAMESPACE, name, uid: metadata.uid ?? "" };
  };
  const tokenOf = async ({ name, uid }: { name: string; uid: string }, audiences: string[]) => {
    const spec = { audiences, expirationSeconds: 3600, boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid } };
    const ref = { namespace: NAMESPACE, name: "foo-operator" };
    return ((await client.createSubresource(SERVICE_ACCOUNTS, ref, "token", { spec })) as { status: { token: string } }).status
      .token;
  };
  const access = (trustPem: string, token: string): Access => ({
    credentials: credentials.createSsl(Buffer.from(trustPem)),
    serverName: SERVER_NAME,
    token,
  });
  const leader = async () => {
    const lease = await client.get(LEASES, { namespace: "ctrlmesh-system", name: "ctrlmesh-manager" });
    return lease.spec?.holderIdentity?.split("_").at(-1) ?? "";
  };
  const serve = async (at: string, pod: { namespace: string; name: string; uid: string }, given: Access) => {
    const proxy = openProxy(at, given);
    proxy.send(registrationOf(pod.name, { pod }));
    await eventually(() => proxy.served || proxy.ended !== undefined, 20_000);
    return proxy;
  };

  it("has one CA for all replicas, published beside the cluster's CA in namespaces with a VirtualApp", async () => {
    const mesh = await eventually(() => published("mesh.crt"), 30_000);
    expect(Buffer.from((await secret()).data?.["tls.crt"] ?? "", "base64").toString()).toBe(mesh);
    const root = await client.get(CONFIG_MAPS, { namespace: NAMESPACE, name: "kube-root-ca.crt" });
    expect(await published("ca.crt")).toBe(mesh + root.data?.["ca.crt"]);
    expect(await published("kubeconfig")).toContain("https://127.0.0.1:5443");
    await expect(client.get(CONFIG_MAPS, { namespace: "default", name: "ctrlmesh-ca" })).rejects.toMatchObject({
      status: { code: 404 },
    });
  });

  it("accepts on every replica only the pod that a token is bound to", async () => {
    const [pod, other] = [await addPod("foo-0"), await addPod("foo-1")];
    const trust = await published("mesh.crt");
    const [token, otherToken] = [await tokenOf(pod, ["ctrlmesh"]), await tokenOf(other, ["ctrlmesh"])];
    const api = await tokenOf(pod, []);
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const key = publicKey.export({ type: "spki", format: "der" });
    for (const at of endpoints()) {
      const { chainPem } = await certify(at, key, access(trust, token));
      const served = { certPem: chainPem, keyPem: privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
      expect(await handshake(served, await published("ca.crt"), "kubernetes.default.svc")).toBe("ok");
      await expect(certify(at, key, access(trust, api))).rejects.toMatchObject({ code: status.UNAUTHENTICATED });
    }
    const at = await eventually(async () => (await leader()) || false);
    const proxy = await serve(at, pod, access(trust, token));
    expect(proxy.served).toBe(true);
    proxy.close();
    const impostor = await serve(at, pod, access(trust, otherToken));
    expect(impostor.ended).toMatchObject({ code: status.PERMISSION_DENIED });
    expect(await metrics()).toMatch(/rejected_identities_total\{reason="other-pod"\} 1/);
    await client.delete(PODS, { namespace: NAMESPACE, name: other.name }, { gracePeriodSeconds: 0 });
    ofRemovedPod = { at, key, given: access(trust, otherToken) };
  });

  it("serves an operator through a real proxy without a failure while the CA changes", async () => {
    const pod = await addPod("foo-3");
    const dir = mkdtempSync(join(tmpdir(), "ctrlmesh-identity-"));
    const old = await published("ca.crt");
    writeFileSync(join(dir, "mesh.crt"), await published("mesh.crt"));
    writeFileSync(join(dir, "token"), await tokenOf(pod, ["ctrlmesh"]));
    const proxy = await startChild({
      name: "proxy",
      command: process.execPath,
      args: [
        programMain("proxy"),
        "--print-ready",
        "--api-server",
        kube.server,
        "--api-server-ca",
        kube.caFile,
        "--manager",
        String(endpoints()[0]),
        "--identity",
        "mesh",
        "--log-level",
        "debug",
        "--manager-ca",
        join(dir, "mesh.crt"),
        "--token",
        join(dir, "token"),
        "--data-dir",
        join(dir, "data"),
        "--pod-name",
        pod.name,
        "--pod-namespace",
        NAMESPACE,
        "--pod-uid",
        pod.uid,
        "--listen",
        "127.0.0.1:0",
        "--health-listen",
        "127.0.0.1:0",
      ],
    });
    try {
      const ready = proxy.ready as { url: string; healthUrl: string };
      await eventually(async () => (await fetch(`${ready.healthUrl}/readyz`)).ok, 20_000);
      const token = await tokenOf(pod, []);
      // Some client libraries read the CA's file only once. This client is like them.
      const operator = createKubeClient({ server: ready.url, caPem: old, token: () => token, userAgent: "operator" });
      const list = async () => (await operator.list(FOOS, { namespace: NAMESPACE })).items;
      await list();
      const serial = () => servedSerial(ready.url, old);
      const before = await serial();
      await kubectl(kube.kubeconfig, [
        "-n",
        "ctrlmesh-system",
        "annotate",
        "secret",
        "ctrlmesh-ca",
        "ctrlmesh.kruise.io/rotate=now",
      ]);
      const failures: unknown[] = [];
      await eventually(
        async () => {
          writeFileSync(join(dir, "mesh.crt"), await published("mesh.crt")); // as the kubelet does
          const [served] = await Promise.all([serial(), list()]).catch((error: unknown) => {
            failures.push(error);
            return [before];
          });
          return (await secret()).data?.["cross.crt"] !== undefined && served !== before;
        },
        { withinMs: 40_000, everyMs: 200 },
      );
      expect(failures).toEqual([]);
      await operator.close();
    } finally {
      await proxy.stop();
      rmSync(dir, { recursive: true, force: true });
    }
  });

  it("rotates its CA on request in all replicas while proxies connect", async () => {
    const pod = await addPod("foo-2");
    const old = await published("mesh.crt");
    const token = await tokenOf(pod, ["ctrlmesh"]);
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const key = publicKey.export({ type: "spki", format: "der" });
    const stream = await serve(await leader(), pod, access(old, token));
    expect(stream.served).toBe(true);
    const ref = ["-n", "ctrlmesh-system", "annotate", "secret", "ctrlmesh-ca"];
    await kubectl(kube.kubeconfig, [...ref, "ctrlmesh.kruise.io/rotate=now"]);
    let certificates = 0;
    const failures: unknown[] = [];
    const requestCertificate = (at: string) =>
      certify(at, key, access(old, token)).catch((error: unknown) => {
        failures.push(error);
        throw error;
      });
    await eventually(
      async () => {
        for (const at of endpoints()) {
          const { chainPem } = await requestCertificate(at);
          const served = { certPem: chainPem, keyPem: privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
          expect(await handshake(served, old, "localhost")).toBe("ok");
          certificates++;
        }
        return firstOf(await published("mesh.crt")) !== firstOf(old);
      },
      { withinMs: 30_000, everyMs: 600 },
    );
    expect(failures).toEqual([]);
    expect(certificates).toBeGreaterThan(4);
    expect(stream.ended).toBeUndefined();
    stream.close();
    const data = (await secret()).data ?? {};
    expect(Object.keys(data).sort()).toEqual(["cross.crt", "old.crt", "tls.crt", "tls.key"]);
    expect(Buffer.from(data["old.crt"] ?? "", "base64").toString()).toContain(firstOf(old));
    expect(await metrics()).toMatch(/ctrlmesh_certificate_expiry_timestamp_seconds\{name="ca"\} \d+/);
  });

  it("refuses the token of a removed pod", async () => {
    const { at, key, given } = ofRemovedPod ?? expect.fail("no pod was removed");
    // The manager remembers for 10 s that a token was valid.
    await eventually(async () => {
      await expect(certify(at, key, given)).rejects.toMatchObject({ code: status.UNAUTHENTICATED });
    }, 40_000);
  });

  it("removes the published trust with the last VirtualApp and the last pod with a proxy", async () => {
    await kubectl(kube.kubeconfig, ["-n", NAMESPACE, "delete", "pods", "--all", "--force", "--grace-period=0"]);
    await kubectl(kube.kubeconfig, ["-n", NAMESPACE, "delete", "virtualapps", "--all", "--timeout=40s"]);
    await eventually(async () => {
      try {
        await published("mesh.crt");
        return false;
      } catch (error) {
        return isStatus(error, "NotFound");
      }
    }, 20_000);
  });
});

/** The first certificate of the bundle, which is the signing CA's. */
function firstOf(bundle: string): string {
  return bundle.slice(0, bundle.indexOf("-----END CERTIFICATE-----"));
}

/** The serial number of the certificate on a new connection that trusts `caPem`. */
async function servedSerial(url: string, caPem: string): Promise<string> {
  const { hostname: host, port } = new URL(url);
  const socket = connect({ host, port: Number(port), ca: caPem, servername: "localhost" });
  try {
    await new Promise<void>((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject));
    return socket.getPeerCertificate().serialNumber;
  } finally {
    socket.destroy();
  }
}
