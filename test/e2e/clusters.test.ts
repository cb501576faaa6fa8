// Other clusters, each with one writer: three real control planes, of which two are divided between the subsets of an operator at the
// first one. The pods have the same credentials for the two, which outlive every pod. The audit logs of the two decide.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { clusterReady, conditionsOf } from "../support/cluster-conditions.ts";
import { type ClusterWriter, clusterWrites, prepareCluster, startClusterWriter, turnsOf } from "../support/cluster-writer.ts";
import { ctrlmesh, forwardingKubectl, PATIENT } from "../support/ctrlmesh.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { allowSecrets } from "../support/multicluster-operator.ts";
import { createProbe } from "../support/probe.ts";
import { describeWithKube, itWithProgram } from "../support/requirements.ts";

const NAMESPACE = "foo-system";
const SUBSETS = { "foo-0": "", "foo-1": "", "canary-0": "v2" };
const DRAIN_SECONDS = 2;
const SECRET_LABELS = { kubeconfig: "of-a-cluster" };

describeWithKube("other clusters", () => {
  let home: Kube;
  let clusters: Readonly<Record<"eu" | "us", Kube>>;
  let mesh: Mesh;
  const pods = new Map<string, MeshPod>();
  const writers = new Map<string, ClusterWriter>();

  const wrapped = mkdtempSync(join(tmpdir(), "ctrlmesh-clusters-"));
  const last = (pod: string) => writers.get(pod)?.last;
  const addPod = async (name: string, version: string) => {
    const pod = await mesh.addPod({ name, labels: { version }, egress: true });
    pods.set(name, pod);
    writers.set(name, await startClusterWriter(pod, clusters));
  };
  const divide = (...matches: readonly object[]) => {
    const app = parse(demoVirtualApp());
    app.spec.route.subRules[0].match.push(...matches);
    app.spec.route.subsetPublicResources = [{ apiGroups: [""], resources: ["secrets"] }];
    return mesh.apply(stringify(app));
  };
  /** The names of the clusters whose Secrets the pod lists. */
  const foundBy = async (name: string): Promise<string[]> => {
    const pod = pods.get(name);
    const probe = createProbe({ url: pod?.proxyUrl ?? "", caPem: pod?.proxyCaPem ?? "", token: pod?.token ?? "" });
    const { body } = await probe.get(`/api/v1/namespaces/${NAMESPACE}/secrets?labelSelector=kubeconfig`);
    await probe.close();
    return JSON.parse(body.toString()).items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
  };

  beforeAll(async () => {
    const [one, two, three] = await Promise.all([startKube(), startKube(), startKube()]);
    home = one;
    clusters = { eu: two, us: three };
    mesh = await startMesh({ kube: home });
    for (const [name, kube] of Object.entries(clusters)) {
      await prepareCluster(kube);
      const metadata = { namespace: NAMESPACE, name, labels: { region: name } };
      await mesh.apply(stringify({ apiVersion: "v1", kind: "Secret", metadata: { ...metadata, labels: SECRET_LABELS } }));
      const spec = { servers: [kube.server], discoveredBy: [{ resource: "secrets", name }], drainSeconds: DRAIN_SECONDS };
      await mesh.apply(stringify({ apiVersion: "ctrlmesh.kruise.io/v1alpha1", kind: "MeshCluster", metadata, spec }));
    }
    // Nothing is at its address: the mesh only hides its Secret.
    const metadata = { namespace: NAMESPACE, name: "ap" };
    await mesh.apply(stringify({ apiVersion: "v1", kind: "Secret", metadata: { ...metadata, labels: SECRET_LABELS } }));
    const spec = { servers: ["https://ap.invalid"], interception: "None", discoveredBy: [{ resource: "secrets", name: "ap" }] };
    await mesh.apply(stringify({ apiVersion: "ctrlmesh.kruise.io/v1alpha1", kind: "MeshCluster", metadata, spec }));
    await allowSecrets(mesh);
    await divide();
    await addPod("foo-0", "v1");
    await addPod("canary-0", "v2");
  });
  afterAll(async () => {
    for (const writer of writers.values()) await writer.stop();
    await mesh?.stop();
    for (const kube of [home, ...Object.values(clusters ?? {})]) await kube?.stop();
    rmSync(wrapped, { recursive: true, force: true });
  });

  it("are open to every pod as long as no rule names them, and the status says so", async () => {
    await eventually(() =>
      expect([last("foo-0"), last("canary-0")]).toEqual([
        { eu: "200", us: "200" },
        { eu: "200", us: "200" },
      ]),
    );
    expect([await foundBy("foo-0"), await foundBy("canary-0")]).toEqual([
      ["ap", "eu", "us"],
      ["ap", "eu", "us"],
    ]);
    expect(await conditionsOf(mesh, "eu")).toEqual({
      Ready: "Unknown NotDivided",
      Identified: "True Unique",
      Enforced: "Unknown NotDivided",
      Decided: "Unknown NotDivided",
      Reachable: "Unknown NotDivided",
    });
  });

  it("have one writer each once a rule gives one of them to a subset", async () => {
    await divide({ clusters: ["eu"] });
    await clusterReady(mesh, "eu");
    await eventually(() => {
      expect(last("canary-0")).toMatchObject({ eu: "200", us: expect.stringContaining("403") });
      expect(last("foo-0")).toMatchObject({ us: "200", eu: expect.stringContaining("403") });
    }, 30_000);
    expect([await foundBy("foo-0"), await foundBy("canary-0")]).toEqual([["ap", "us"], ["eu"]]);
    expect(await conditionsOf(mesh, "ap")).toEqual({
      Ready: "True NotIntercepted",
      Identified: "True Unique",
      Enforced: "Unknown NotIntercepted",
      Decided: "True ByRules",
      Reachable: "Unknown NotIntercepted",
    });
    // The new owner's tunnels are cut too, until the pod that does not own the cluster has no request left there.
    const writes = clusterWrites(clusters.eu);
    const lastMs = Math.max(...writes.filter(({ pod }) => pod === "foo-0").map(({ answeredMs }) => answeredMs));
    const later = writes.map(({ receivedMs }) => receivedMs).filter((ms) => ms > lastMs - 500);
    const pauses = later.slice(1).map((ms, at) => ms - (later[at] ?? 0));
    expect(Math.max(...pauses)).toBeGreaterThan(DRAIN_SECONDS * 1_000 - 200);
  });

  itWithProgram("kubectl", "are shown by ctrlmesh: their owners, why, and what a connection of a pod gets", async () => {
    forwardingKubectl(wrapped, [...pods.values()]);
    const run = (...args: string[]) =>
      ctrlmesh(home.kubeconfig, [...args, "-n", NAMESPACE, PATIENT], { PATH: `${wrapped}:${process.env.PATH}` });
    const owner = await run("explain", "owner", "meshcluster/eu");
    expect(owner.stdout).toMatch(/foo-0 +default +\d+ +subset "v2" +CLUSTER_NOT_OWNED\n/);
    expect(owner.stdout).toMatch(/canary-0 +v2 +\d+ +subset "v2" +open\n/);
    expect(owner.stdout).toMatch(/v2 +yes +clusters has eu\n/);
    expect(await run("explain", "request", "canary-0", "connect", clusters.eu.server)).toMatchObject({ code: 0 });
    const refused = await run("explain", "request", "foo-0", "CONNECT", clusters.eu.server);
    expect(refused).toMatchObject({ code: 2, stdout: expect.stringContaining('cluster "eu" belongs to subset "v2"') });
    await eventually(async () => expect((await run("owners")).stdout).toMatch(/\(cluster eu\) +v2 +Owned/));
    expect((await run("diff", "foo-0")).stdout).not.toContain("(cluster");
    expect((await run("status")).stdout).toContain("3 other clusters, each with one owner\n");
    const edit = join(wrapped, "edit.yaml");
    writeFileSync(edit, demoVirtualApp());
    expect(await run("plan", "-f", edit)).toMatchObject({
      code: 2,
      stdout: expect.stringContaining("every pod will be able to write to: eu, us\n"),
    });
    expect((await run("plan", "--delete-cluster", "eu")).stdout).toContain("clusters v2 -> every pod  1  eu\n");
  });

  it("move without two writers", async () => {
    const sinceMs = Date.now();
    await divide({ clusterSelector: { matchExpressions: [{ key: "region", operator: "Exists" }] } });
    await eventually(() => expect(last("canary-0")).toEqual({ eu: "200", us: "200" }), 30_000);
    expect([await foundBy("foo-0"), await foundBy("canary-0")]).toEqual([["ap"], ["eu", "us"]]);
    const { turns, overlaps } = turnsOf(
      clusterWrites(clusters.us).filter(({ receivedMs }) => receivedMs > sinceMs),
      SUBSETS,
    );
    expect({ turns, overlaps }).toEqual({ turns: ["", "v2"], overlaps: [] });
    expect(
      turnsOf(
        clusterWrites(clusters.eu).filter(({ receivedMs }) => receivedMs > sinceMs),
        SUBSETS,
      ).turns,
    ).toEqual(["v2"]);
  });

  it("have one writer when their owner is removed by force and its processes still reach them", async () => {
    const sinceMs = Date.now();
    await pods.get("canary-0")?.deleteObject();
    await divide({ clusters: ["none"] });
    await eventually(() => expect(last("foo-0")).toEqual({ eu: "200", us: "200" }), { withinMs: 40_000 });
    expect(last("canary-0")).toEqual({ eu: expect.stringMatching(/503|403/), us: expect.stringMatching(/503|403/) });
    for (const kube of Object.values(clusters)) {
      const writes = clusterWrites(kube).filter(({ receivedMs }) => receivedMs > sinceMs);
      expect(turnsOf(writes, SUBSETS)).toEqual({ turns: ["v2", ""], overlaps: [] });
    }
  });
});
