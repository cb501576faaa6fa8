// Three control planes, two of which are other clusters: one with tunnels, one whose requests the sidecar serves. And twice six broken
// clusters, one for each level. The sidecar reaches none of these, but the manager can list namespaces in the second ones, by another server.
import { fileURLToPath } from "node:url";
import { parse, stringify } from "yaml";
import { MESH_CLUSTERS } from "../../src/api/resources.ts";
import { bundleProxy } from "../../test/support/bundled-proxy.ts";
import { startChild } from "../../test/support/child-process.ts";
import { demoVirtualApp } from "../../test/support/demo-app.ts";
import { createDividedCluster } from "../../test/support/divided-cluster.ts";
import { eventually } from "../../test/support/eventually.ts";
import { type Kube, startKube } from "../../test/support/kube.ts";
import { type Mesh, type MeshPod, startMesh } from "../../test/support/mesh.ts";
import { createProbe } from "../../test/support/probe.ts";

export interface ClustersWorld {
  readonly eu: Kube;
  readonly us: Kube;
  readonly pod: MeshPod;
  /** host:port of the broken clusters with a tunnel. */
  readonly tunnels: readonly string[];
  /** host:port of the other broken clusters. */
  readonly servers: readonly string[];
  /** Paths of the broken clusters that the sidecar serves. */
  readonly paths: readonly string[];
  stop(): Promise<void>;
}

/** The sidecar serves it from the good cluster us. */
export const OBJECT_PATH = "/api/v1/namespaces/bench/configmaps/shared";
const NAMESPACE = "foo-system";

export const program = (name: string, ...args: string[]) =>
  startChild({ name, command: process.execPath, args: [fileURLToPath(new URL(`./${name}.ts`, import.meta.url)), ...args] });

export async function startClustersWorld(note: (text: string) => void): Promise<ClustersWorld> {
  note("three control planes and twelve broken clusters");
  const [local, eu, us] = await Promise.all([startKube(), startKube(), startKube()]);
  const bundled = await bundleProxy();
  const mesh = await startMesh({ kube: local, proxyMain: bundled.main });
  const levels = await Promise.all([startBroken(us), startBroken(us)]);
  const [first, second] = levels;
  const good = createDividedCluster("us", us);
  await good.createNamespace("bench");
  await good.createConfigMap("bench");
  await good.join(mesh, 5);
  await applyCluster(mesh, "eu", { servers: [eu.server] });
  for (const [kind, url] of Object.entries(first.urls)) await applyCluster(mesh, `first-${kind}`, { servers: [url] });
  for (const [at, [kind, url]] of Object.entries(second.urls).entries()) {
    const name = `second-${kind}`;
    const server = second.forwarders[at] ?? "";
    await good.giveAccess(mesh, {}, { name, server });
    const ca = kind === "expired" ? second.caPem : us.caPem;
    const terminate = { certificateAuthorityData: Buffer.from(ca).toString("base64"), kubeconfigSecret: name };
    await applyCluster(mesh, name, { servers: [url, server], interception: "Terminate", terminate });
  }
  const app = parse(demoVirtualApp());
  app.spec.route.subRules[0].match.push({ clusters: ["none"] });
  await mesh.apply(stringify(app));
  const pod = await mesh.addPod({ name: "foo-0", labels: { version: "v1" }, egress: true });
  // The API server at home has to accept a token of the pod.
  const home = createProbe({ url: pod.proxyUrl, caPem: pod.proxyCaPem, token: pod.token });
  await home.get("/version");
  note("waiting until all clusters are ready");
  await eventually(async () => {
    const { items } = await mesh.client.list(MESH_CLUSTERS, { namespace: NAMESPACE });
    const waiting = items.filter(
      ({ status }) => !status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True"),
    );
    if (waiting.length > 0)
      throw new Error(JSON.stringify(waiting.map(({ metadata, status }) => [metadata.name, status?.conditions?.[0]])));
  }, 90_000);
  return {
    eu,
    us,
    pod,
    tunnels: Object.values(first.urls).map((url) => new URL(url).host),
    servers: Object.values(second.urls).map((url) => new URL(url).host),
    paths: Object.keys(second.urls).map((kind) => `/_ctrlmesh/clusters/second-${kind}${OBJECT_PATH}`),
    async stop() {
      await home.close();
      for (const { stop } of levels) await stop();
      await good.close();
      await mesh.stop();
      for (const kube of [local, eu, us]) await kube.stop();
      bundled.remove();
    },
  };
}

/** A server of each kind, and one of no address. */
async function startBroken(us: Kube) {
  const [servers, stopped] = await Promise.all([program("bad-servers", new URL(us.server).port), program("stopped-server")]);
  const local = (port: unknown) => `https://127.0.0.1:${port}`;
  const { ports, forwarders, caPem } = servers.ready as unknown as BadServers;
  const urls = Object.fromEntries(Object.entries(ports).map(([kind, port]) => [kind, local(port)]));
  return {
    urls: { ...urls, stopped: local(stopped.ready.port), unresolvable: `https://no-${servers.pid}.invalid:6443` },
    forwarders: forwarders.map(local),
    caPem,
    async stop() {
      for (const child of [servers, stopped]) await child.stop(1_000);
    },
  };
}

interface BadServers {
  readonly ports: Readonly<Record<string, number>>;
  readonly forwarders: readonly number[];
  readonly caPem: string;
}

function applyCluster(mesh: Mesh, name: string, spec: object): Promise<unknown> {
  const metadata = { namespace: NAMESPACE, name };
  return mesh.apply(
    stringify({ apiVersion: "ctrlmesh.kruise.io/v1alpha1", kind: "MeshCluster", metadata, spec: { ...spec, drainSeconds: 5 } }),
  );
}
