// An operator that finds its clusters by ClusterProfiles: on multicluster-runtime, with the access package of cluster-inventory-api. The
// manager makes the MeshClusters. All control planes are real, and the audit logs of the other clusters say who has written there.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { MESH_CLUSTERS } from "../../src/api/resources.ts";
import { applyProfile, installInventory } from "../support/cluster-inventory.ts";
import { clusterWrites, prepareCluster, turnsOf } from "../support/cluster-writer.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import {
  accessProviderOf,
  allowReading,
  clusterThrough,
  startInventoryOperator,
  WRITE_LABEL,
} from "../support/multicluster-operator.ts";
import { createProbe } from "../support/probe.ts";
import { describeWithKube } from "../support/requirements.ts";
import type { Supervised } from "../support/supervised.ts";

type Cluster = "eu" | "us";
type Subset = "" | "v2";

const NAMESPACE = "foo-system";
const GROUP = "multicluster.x-k8s.io";
const SUBSETS = { "foo-0": "", "canary-0": "v2" } as const;
/** A cluster makes progress when its owner has written so often. */
const WRITES = 20;
const PROGRESS_MS = 75_000;

describeWithKube("an operator that finds clusters by ClusterProfiles", () => {
  let dir: string;
  let home: Kube;
  let clusters: Readonly<Record<Cluster, Kube>>;
  let mesh: Mesh;
  const pods: MeshPod[] = [];
  const operators: Supervised[] = [];

  const divide = (...names: readonly string[]) => {
    const app = parse(demoVirtualApp());
    if (names.length > 0) app.spec.route.subRules[0].match.push({ clusters: names });
    app.spec.route.subsetPublicResources = [{ apiGroups: [GROUP], resources: ["clusterprofiles"] }];
    return mesh.apply(stringify(app));
  };
  const writesSince = (name: Cluster, sinceMs: number) =>
    clusterWrites(clusters[name]).filter(({ receivedMs }) => receivedMs > sinceMs);
  const outputs = () => operators.map(({ child }) => child.output().slice(-3_000)).join("\n");
  const progress = async (name: Cluster, subset: Subset) => {
    const nowMs = Date.now();
    const own = () => writesSince(name, nowMs).filter(({ pod }) => SUBSETS[pod as keyof typeof SUBSETS] === subset);
    await eventually(() => expect(own().length, `${name} of "${subset}"\n${outputs()}`).toBeGreaterThan(WRITES), PROGRESS_MS);
  };
  const turnsSince = (name: Cluster, sinceMs: number) => turnsOf(writesSince(name, sinceMs), SUBSETS);
  const isDivided = async (name: Cluster) => {
    const { items } = await mesh.client.list(MESH_CLUSTERS, { namespace: NAMESPACE });
    const conditions = items.find(({ metadata }) => metadata.name === name)?.status?.conditions ?? [];
    return conditions.some(({ type, reason }) => type === "Ready" && reason === "OneOwner");
  };
  /** The names of the profiles that the pod lists. */
  const profilesSeenBy = async ({ proxyUrl, proxyCaPem, token }: MeshPod): Promise<string[]> => {
    const probe = createProbe({ url: proxyUrl, caPem: proxyCaPem, token });
    const { body } = await probe.get(`/apis/${GROUP}/v1alpha1/namespaces/${NAMESPACE}/clusterprofiles`);
    await probe.close();
    return JSON.parse(body.toString()).items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
  };

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), "ctrlmesh-profiles-"));
    const [one, two, three] = await Promise.all([startKube(), startKube(), startKube()]);
    home = one;
    clusters = { eu: two, us: three };
    await installInventory(home);
    mesh = await startMesh({ kube: home });
    await allowReading(mesh, GROUP, "clusterprofiles");
    for (const kube of Object.values(clusters)) await prepareCluster(kube, WRITE_LABEL);
    await divide();
    for (const [name, version] of Object.entries({ "foo-0": "v1", "canary-0": "v2" })) {
      pods.push(await mesh.addPod({ name, labels: { version }, egress: true }));
    }
    for (const [name, kube] of Object.entries(clusters)) {
      const accessProviders = pods.map((pod) => ({ name: accessProviderOf(pod, name), cluster: clusterThrough(pod, kube) }));
      await applyProfile(home, { namespace: NAMESPACE, name, accessProviders });
    }
    for (const pod of pods) operators.push(await startInventoryOperator(mesh, pod, clusters, dir));
  }, 600_000);
  afterAll(async () => {
    for (const operator of operators) await operator.stop(2_000);
    await mesh?.stop();
    for (const kube of [home, ...Object.values(clusters ?? {})]) await kube?.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  it("writes to every cluster from both subsets as long as no rule divides them", async () => {
    for (const name of ["eu", "us"] as const) for (const subset of ["", "v2"] as const) await progress(name, subset);
  });

  it("has one subset that sees and writes to each cluster once a rule divides them", async () => {
    await divide("eu");
    await eventually(
      async () => expect((await mesh.client.list(MESH_CLUSTERS, { namespace: NAMESPACE })).items).toHaveLength(2),
      60_000,
    );
    const edit = ["--type=merge", "-p", '{"spec":{"drainSeconds":2}}'];
    for (const name of ["eu", "us"]) await kubectl(home.kubeconfig, ["patch", "meshcluster", name, "-n", NAMESPACE, ...edit]);
    await eventually(async () => expect([await isDivided("eu"), await isDivided("us")]).toEqual([true, true]), 120_000);
    const sinceMs = Date.now();
    await progress("eu", "v2");
    await progress("us", "");
    expect(turnsSince("eu", sinceMs)).toEqual({ turns: ["v2"], overlaps: [] });
    expect(turnsSince("us", sinceMs)).toEqual({ turns: [""], overlaps: [] });
    expect(await Promise.all(pods.map(profilesSeenBy))).toEqual([["us"], ["eu"]]);
  }, 300_000);

  it("moves a cluster to the other subset and back without two writers", async () => {
    const sinceMs = Date.now();
    await divide("eu", "us");
    await progress("us", "v2");
    await divide("eu");
    await progress("us", "");
    await progress("eu", "v2");
    expect(turnsSince("us", sinceMs)).toEqual({ turns: ["", "v2", ""], overlaps: [] });
    expect(turnsSince("eu", sinceMs)).toEqual({ turns: ["v2"], overlaps: [] });
    expect(operators.map(({ restarts }) => restarts)).toEqual([0, 0]);
  }, 300_000);
});
