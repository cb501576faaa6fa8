// An unmodified operator on multicluster-runtime with its kubeconfig provider: a pod in each of two subsets, which divide two other
// clusters. All control planes are real, and the audit logs of the two clusters say who has written there.
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { MESH_CLUSTERS } from "../../src/api/resources.ts";
import { clusterReady } from "../support/cluster-conditions.ts";
import { clusterWrites, prepareCluster, turnsOf } from "../support/cluster-writer.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { allowSecrets, startMulticlusterOperator, WRITE_LABEL } from "../support/multicluster-operator.ts";
import { describeWithKube } from "../support/requirements.ts";
import type { Supervised } from "../support/supervised.ts";

type Cluster = "eu" | "us";
type Subset = "" | "v2";

const NAMESPACE = "foo-system";
const SUBSETS = { "foo-0": "", "canary-0": "v2" } as const;
const DRAIN_SECONDS = 2;
/** A cluster makes progress when its owner has written so often. */
const WRITES = 20;
/** A removed pod keeps a cluster for 34 s at least. The reflectors of client-go wait up to 30 s, with jitter up to 60 s, between two lists. */
const RETRIES_MS = 75_000;
/** Of a test with several waits. */
const TEST_MS = 300_000;

describeWithKube("an operator on multicluster-runtime", () => {
  let home: Kube;
  let clusters: Readonly<Record<Cluster, Kube>>;
  let mesh: Mesh;
  const pods = {} as Record<keyof typeof SUBSETS, MeshPod>;
  const operators = {} as Record<keyof typeof SUBSETS, Supervised>;

  const addPod = async (name: keyof typeof SUBSETS, version: string) => {
    pods[name] = await mesh.addPod({ name, labels: { version }, egress: true });
    operators[name] = await startMulticlusterOperator(mesh, pods[name], clusters);
  };
  /** Gives the clusters to the subset v2, and all others to the default subset. Without a cluster, no rule divides them. */
  const divide = (...names: readonly string[]) => {
    const app = parse(demoVirtualApp());
    if (names.length > 0) app.spec.route.subRules[0].match.push({ clusters: names });
    app.spec.route.subsetPublicResources = [{ apiGroups: [""], resources: ["secrets"] }];
    return mesh.apply(stringify(app));
  };
  const writesSince = (name: Cluster, sinceMs: number) =>
    clusterWrites(clusters[name]).filter(({ receivedMs }) => receivedMs > sinceMs);
  const outputs = () =>
    Object.entries(operators)
      .map(([name, { child, restarts }]) => `${name}, ${restarts} restarts:\n${child.output().slice(-3_000)}`)
      .join("\n");
  /** Waits until the subset makes progress in the cluster from now on. */
  const progress = async (name: Cluster, subset: Subset) => {
    const nowMs = Date.now();
    const own = () => writesSince(name, nowMs).filter(({ pod }) => SUBSETS[pod as keyof typeof SUBSETS] === subset);
    await eventually(() => expect(own().length, `${name} of "${subset}"\n${outputs()}`).toBeGreaterThan(WRITES), RETRIES_MS);
  };
  const turnsSince = (name: Cluster, sinceMs: number) => turnsOf(writesSince(name, sinceMs), SUBSETS);
  const oneWriter = (subset: Subset) => ({ turns: [subset], overlaps: [] });
  const reachable = async (name: Cluster) => {
    const { status } = await mesh.client.get(MESH_CLUSTERS, { namespace: NAMESPACE, name });
    return status?.conditions
      ?.flatMap(({ type, reason, message }) => (type === "Reachable" ? `${reason} ${message}` : []))
      .join();
  };

  beforeAll(async () => {
    const [one, two, three] = await Promise.all([startKube(), startKube(), startKube()]);
    home = one;
    clusters = { eu: two, us: three };
    mesh = await startMesh({ kube: home, managers: 2 });
    await allowSecrets(mesh);
    for (const [name, kube] of Object.entries(clusters)) {
      await prepareCluster(kube, WRITE_LABEL);
      // The operator of a pod has a Secret of its own for each cluster.
      const discoveredBy = Object.keys(SUBSETS).map((pod) => ({ resource: "secrets", name: `${pod}-${name}` }));
      const spec = { servers: [kube.server], discoveredBy, drainSeconds: DRAIN_SECONDS };
      const metadata = { namespace: NAMESPACE, name };
      await mesh.apply(stringify({ apiVersion: "ctrlmesh.kruise.io/v1alpha1", kind: "MeshCluster", metadata, spec }));
    }
    await divide();
    await addPod("foo-0", "v1");
    await addPod("canary-0", "v2");
  }, 180_000);
  afterAll(async () => {
    for (const operator of Object.values(operators)) await operator.stop(2_000);
    await mesh?.stop();
    for (const kube of [home, ...Object.values(clusters ?? {})]) await kube?.stop();
  });

  it("writes to every cluster from both subsets as long as no rule divides them", async () => {
    for (const name of ["eu", "us"] as const) for (const subset of ["", "v2"] as const) await progress(name, subset);
  });

  it("has one subset that writes to each cluster once a rule divides them", async () => {
    await divide("eu");
    for (const name of ["eu", "us"]) await clusterReady(mesh, name);
    const sinceMs = Date.now();
    await progress("eu", "v2");
    await progress("us", "");
    expect(turnsSince("eu", sinceMs)).toEqual(oneWriter("v2"));
    expect(turnsSince("us", sinceMs)).toEqual(oneWriter(""));
  });

  it(
    "moves a cluster to the other subset and back",
    async () => {
      const sinceMs = Date.now();
      await divide("eu", "us");
      await progress("us", "v2");
      await divide("eu");
      await progress("us", "");
      await progress("eu", "v2");
      expect(turnsSince("us", sinceMs)).toEqual({ turns: ["", "v2", ""], overlaps: [] });
      expect(turnsSince("eu", sinceMs)).toEqual(oneWriter("v2"));
    },
    TEST_MS,
  );

  it(
    "starts while a cluster is closed to it, writes to the other one, and to the closed one once that moves here",
    async () => {
      const sinceMs = Date.now();
      await operators["foo-0"].crash();
      await progress("us", "");
      expect(turnsSince("eu", sinceMs)).toEqual(oneWriter("v2"));
      await divide("none");
      await progress("eu", "");
      await divide("eu");
      await progress("eu", "v2");
      expect(turnsSince("eu", sinceMs)).toEqual({ turns: ["v2", "", "v2"], overlaps: [] });
      expect(turnsSince("us", sinceMs)).toEqual(oneWriter(""));
    },
    TEST_MS,
  );

  it(
    "moves a cluster there and back after kill -9 of the leading manager",
    async () => {
      const sinceMs = Date.now();
      await mesh.managers[0]?.crash();
      await progress("us", "");
      await divide("eu", "us");
      await progress("us", "v2");
      await divide("eu");
      await progress("us", "");
      expect(turnsSince("us", sinceMs)).toEqual({ turns: ["", "v2", ""], overlaps: [] });
      expect(turnsSince("eu", sinceMs)).toEqual(oneWriter("v2"));
    },
    TEST_MS,
  );

  it(
    "keeps its clusters after kill -9 of the sidecar of an owner",
    async () => {
      const sinceMs = Date.now();
      await pods["canary-0"].restartProxy();
      await progress("eu", "v2");
      await progress("us", "");
      expect(turnsSince("eu", sinceMs)).toEqual(oneWriter("v2"));
      expect(turnsSince("us", sinceMs)).toEqual(oneWriter(""));
    },
    TEST_MS,
  );

  it(
    "writes to the other cluster while one is away, and to both when that is back",
    async () => {
      const sinceMs = Date.now();
      await clusters.eu.crash();
      await progress("us", "");
      await eventually(
        async () => expect(await reachable("eu")).toMatch(/^Unreachable .*canary-0.*connect ECONNREFUSED/),
        30_000,
      );
      const aloneMs = Date.now();
      await clusters.eu.restart();
      await progress("eu", "v2");
      await progress("us", "");
      await eventually(async () => expect(await reachable("eu")).toMatch(/^NoFailures/), 10_000);
      expect(turnsSince("eu", aloneMs)).toEqual(oneWriter("v2"));
      expect(turnsSince("us", sinceMs)).toEqual(oneWriter(""));
    },
    TEST_MS,
  );

  it(
    "leaves a cluster when its pod is removed by force, though the process runs on",
    async () => {
      const sinceMs = Date.now();
      await pods["canary-0"].deleteObject();
      await divide("none");
      await progress("eu", "");
      await progress("us", "");
      expect(operators["canary-0"].isUp).toBe(true);
      expect(turnsSince("eu", sinceMs)).toEqual({ turns: ["v2", ""], overlaps: [] });
      expect(turnsSince("us", sinceMs)).toEqual(oneWriter(""));
    },
    TEST_MS,
  );

  it("ends no operator, except that of the removed pod, which loses its lock, and the one that the test has killed", () => {
    expect(operators["foo-0"].restarts, outputs()).toBe(1);
  });
});
