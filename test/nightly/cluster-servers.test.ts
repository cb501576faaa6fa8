// Other clusters whose servers are not like others: one with an expired certificate, and one at an address of this machine that is not the
// loopback, which clients reach by HTTPS_PROXY alone. kubectl, unmodified, sees the servers' own TLS.
import { once } from "node:events";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { createCa, issueServerCertificate } from "../../src/base/certificates.ts";
import { clusterReady, conditionsOf } from "../support/cluster-conditions.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { clusterOf, createKubeconfigs, proveHome } from "../support/kubeconfig-through.ts";
import { tryKubectl } from "../support/kubectl.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { describeWithKube } from "../support/requirements.ts";

const NAMESPACE = "foo-system";
const DAY_MS = 86_400_000;
const GET = ["get", "namespaces", "-o", "name", "--request-timeout=20s"];

/** An IPv4 address of this machine that clients do not take for their own. */
const address = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .find(({ family, internal }) => family === "IPv4" && !internal)?.address;

interface TlsServer {
  readonly server: Server;
  readonly caPem: string;
  readonly url: string;
}

/** Answers every request like an API server with one namespace. @param issuedMs when its certificate was issued, for 30 days */
async function serveTls(host: string, issuedMs: number): Promise<TlsServer> {
  const ca = createCa({ commonName: "another cluster", now: issuedMs });
  const leaf = issueServerCertificate(ca, { dnsNames: ["localhost"], ipAddresses: [host], now: issuedMs, days: 30 });
  const list = { apiVersion: "v1", kind: "NamespaceList", metadata: {}, items: [{ metadata: { name: "of-this-server" } }] };
  const resources = [{ name: "namespaces", singularName: "", namespaced: false, kind: "Namespace", verbs: ["list"] }];
  const answers: Readonly<Record<string, object>> = {
    "/api": { kind: "APIVersions", versions: ["v1"] },
    "/apis": { kind: "APIGroupList", apiVersion: "v1", groups: [] },
    "/api/v1": { kind: "APIResourceList", groupVersion: "v1", resources },
  };
  const server = createServer({ cert: leaf.certPem, key: leaf.keyPem }, (req, res) => {
    const [path = ""] = (req.url ?? "").split("?");
    res.setHeader("content-type", "application/json");
    res.end(JSON.stringify(answers[path] ?? list));
  });
  await once(server.listen(0, host), "listening");
  return { server, caPem: ca.certPem, url: `https://${host}:${(server.address() as AddressInfo).port}` };
}

describeWithKube("servers of other clusters", () => {
  const kubeconfigs = createKubeconfigs();
  let home: Kube;
  let eu: Kube;
  let mesh: Mesh;
  let expired: TlsServer;
  let owner: MeshPod;
  let other: MeshPod;

  const addCluster = (name: string, server: string) => {
    const metadata = { namespace: NAMESPACE, name };
    const spec = { servers: [server], drainSeconds: 1 };
    return mesh.apply(stringify({ apiVersion: "ctrlmesh.kruise.io/v1alpha1", kind: "MeshCluster", metadata, spec }));
  };
  /** @param how a proxy-url in the kubeconfig, or HTTPS_PROXY */
  const get = (pod: MeshPod, { url, caPem }: Pick<TlsServer, "url" | "caPem">, how: "proxy-url" | "HTTPS_PROXY") => {
    const cluster = clusterOf({ server: url, caPem });
    const isByFile = how === "proxy-url";
    const file = kubeconfigs.write({ ...cluster, ...(isByFile && { "proxy-url": pod.egressUrl }) }, { token: eu.token });
    return tryKubectl(file, GET, undefined, isByFile ? {} : { HTTPS_PROXY: pod.egressUrl, NO_PROXY: "" });
  };

  beforeAll(async () => {
    [home, eu] = await Promise.all([startKube(), startKube()]);
    mesh = await startMesh({ kube: home });
    expired = await serveTls("127.0.0.1", Date.now() - 60 * DAY_MS);
    await addCluster("eu", eu.server);
    await addCluster("expired", expired.url);
    const app = parse(demoVirtualApp());
    app.spec.route.subRules[0].match.push({ clusterSelector: {} });
    await mesh.apply(stringify(app));
    const addPod = async (name: string, version: string) => {
      const pod = await mesh.addPod({ name, labels: { version }, egress: true });
      await proveHome(pod);
      return pod;
    };
    other = await addPod("foo-0", "v1");
    owner = await addPod("canary-0", "v2");
    for (const name of ["eu", "expired"]) await clusterReady(mesh, name);
  }, 180_000);
  afterAll(async () => {
    await mesh?.stop();
    for (const kube of [home, eu]) await kube?.stop();
    expired?.server.close();
    kubeconfigs.remove();
  });

  it("with an expired certificate fail at the client, by the server's own TLS, and cost other clusters nothing", async () => {
    for (let round = 0; round < 8; round++) {
      const [bad, good] = await Promise.all([
        get(owner, expired, "proxy-url"),
        get(owner, { url: eu.server, caPem: eu.caPem }, "proxy-url"),
      ]);
      expect([bad.code, bad.stderr]).toEqual([1, expect.stringContaining("certificate has expired")]);
      expect([good.code, good.stdout]).toEqual([0, expect.stringContaining("namespace/default")]);
      await new Promise((resolve) => setTimeout(resolve, 1_000)); // for longer than it takes to call a cluster unreachable
    }
    // The sidecar sees no TLS: for it, the connections have opened.
    expect(await conditionsOf(mesh, "expired")).toMatchObject({ Ready: "True OneOwner", Reachable: "True NoFailures" });
    expect((await get(other, expired, "proxy-url")).stderr).toContain('cluster "expired" belongs to subset "v2"');
  }, 120_000);

  describe.skipIf(address === undefined && process.env.CI !== "true")("at an address that is not the loopback", () => {
    let far: TlsServer;
    beforeAll(async () => {
      if (address === undefined) throw new Error("this machine has no IPv4 address but the loopback");
      far = await serveTls(address, Date.now());
    });
    afterAll(() => void far?.server.close());

    it("are open to every pod by HTTPS_PROXY until a MeshCluster lists them, and then to their owner alone", async () => {
      for (const pod of [owner, other]) {
        expect(await get(pod, far, "HTTPS_PROXY")).toMatchObject({ code: 0, stdout: "namespace/of-this-server\n" });
      }
      await addCluster("far", far.url);
      await clusterReady(mesh, "far", 90_000); // whatever its drainSeconds: the last tunnels to it ended before anybody knew that time
      expect(await get(owner, far, "HTTPS_PROXY")).toMatchObject({ code: 0, stdout: "namespace/of-this-server\n" });
      expect(await get(other, far, "HTTPS_PROXY")).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('cluster "far" belongs to subset "v2"'),
      });
    }, 150_000);

    it("are reached around the sidecar by a client whose NO_PROXY names them, which the docs list as a limit", async () => {
      const file = kubeconfigs.write(clusterOf({ server: far.url, caPem: far.caPem }), { token: eu.token });
      const around = await tryKubectl(file, GET, undefined, { HTTPS_PROXY: other.egressUrl, NO_PROXY: address ?? "" });
      expect(around).toMatchObject({ code: 0, stdout: "namespace/of-this-server\n" });
    });
  });
});
