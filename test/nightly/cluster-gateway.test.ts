// Two clusters behind one host and port, as behind Rancher or another gateway: each with owners of its own for its namespaces. Three real
// control planes; the audit logs of the two clusters decide.
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { clusterReady } from "../support/cluster-conditions.ts";
import { turnsOf } from "../support/cluster-writer.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { createDividedCluster, type DividedCluster } from "../support/divided-cluster.ts";
import { eventually } from "../support/eventually.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { type NamespaceWriter, startNamespaceWriter, writesIn } from "../support/namespace-writer.ts";
import { describeWithKube } from "../support/requirements.ts";

const NAMESPACES = ["team-a", "team-b"];
const NAMES = ["eu", "us"];
const DRAIN_SECONDS = 2;
const SUBSETS = { "foo-0": "", "canary-0": "v2" };
const PODS = { "foo-0": "v1", "canary-0": "v2" };

describeWithKube("clusters behind one gateway", () => {
  let kubes: readonly Kube[];
  let gateway: Gateway;
  let mesh: Mesh;
  const clusters = new Map<string, DividedCluster>();
  const writers = new Map<string, NamespaceWriter>();
  const clusterOf = (name: string): DividedCluster => {
    const cluster = clusters.get(name);
    if (cluster === undefined) throw new Error(`there is no cluster ${name}`);
    return cluster;
  };
  const last = (pod: string, cluster: string) => writers.get(`${pod} ${cluster}`)?.last;

  beforeAll(async () => {
    kubes = await Promise.all([startKube(), startKube(), startKube()]);
    const [home, ...others] = kubes as [Kube, Kube, Kube];
    gateway = await startGateway(Object.fromEntries(others.map((kube, at) => [`/k8s/clusters/${NAMES[at]}`, kube])));
    mesh = await startMesh({ kube: home });
    for (const [at, kube] of others.entries()) {
      const name = NAMES[at] ?? "";
      const server = { server: gateway.urlOf(`/k8s/clusters/${name}`), caPem: gateway.caPem };
      const cluster = createDividedCluster(name, kube, server);
      clusters.set(name, cluster);
      for (const namespace of NAMESPACES) {
        await cluster.createNamespace(namespace, { cell: `${name}-${namespace}` });
        await cluster.createConfigMap(namespace);
      }
      await cluster.join(mesh, DRAIN_SECONDS);
    }
    // The same name in both clusters, with another owner in each.
    const app = parse(demoVirtualApp());
    for (const [cluster, cell] of Object.entries({ eu: "eu-team-a", us: "us-team-b" }))
      app.spec.route.subRules[0].match.push({ clusters: [cluster], namespaceSelector: { matchLabels: { cell } } });
    await mesh.apply(stringify(app));
    for (const [pod, version] of Object.entries(PODS)) {
      const added = await mesh.addPod({ name: pod, labels: { version }, egress: true });
      for (const name of NAMES) {
        const { kube } = clusterOf(name);
        writers.set(`${pod} ${name}`, await startNamespaceWriter(added, { name, kube }, NAMESPACES));
      }
    }
  }, 240_000);
  afterAll(async () => {
    for (const writer of writers.values()) await writer.stop();
    for (const cluster of clusters.values()) await cluster.close();
    await mesh?.stop();
    gateway?.close();
    for (const kube of kubes ?? []) await kube.stop();
  });

  it("each have owners of their own", async () => {
    for (const name of NAMES) await clusterReady(mesh, name);
    await eventually(() => {
      expect(last("canary-0", "eu")).toEqual({ "team-a": "200", "team-b": "403" });
      expect(last("foo-0", "eu")).toEqual({ "team-a": "403", "team-b": "200" });
      expect(last("canary-0", "us")).toEqual({ "team-a": "403", "team-b": "200" });
      expect(last("foo-0", "us")).toEqual({ "team-a": "200", "team-b": "403" });
    }, 60_000);
  });

  it("move their namespaces one by one, with one writer at a time", async () => {
    await clusterOf("us").labelNamespace("team-b", { cell: "none" });
    await eventually(() => {
      expect(last("foo-0", "us")).toEqual({ "team-a": "200", "team-b": "200" });
      expect(last("canary-0", "eu")).toEqual({ "team-a": "200", "team-b": "403" });
    }, 60_000);
    for (const writer of writers.values()) await writer.stop();
    for (const name of NAMES) {
      const turns = NAMESPACES.map((namespace) => turnsOf(writesIn(clusterOf(name).kube, namespace), SUBSETS));
      expect(turns.flatMap(({ overlaps }) => overlaps)).toEqual([]);
      expect(turns.map((each) => each.turns)).toEqual(name === "eu" ? [["v2"], [""]] : [[""], ["v2", ""]]);
    }
  });
});
