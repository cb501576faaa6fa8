// An unmodified operator on multicluster-runtime with its kubeconfig provider: a pod in each of two subsets, which divide the namespaces
// of two other clusters. All control planes are real, and the audit logs of the two clusters say who has written in which namespace.
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { clusterReady, conditionsOf } from "../support/cluster-conditions.ts";
import { clusterWrites, turnsOf } from "../support/cluster-writer.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { createDividedCluster, type DividedCluster } from "../support/divided-cluster.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { allowSecrets, clusterServedBy, startMulticlusterOperator, WRITE_LABEL } from "../support/multicluster-operator.ts";
import { describeWithKube } from "../support/requirements.ts";
import type { Supervised } from "../support/supervised.ts";

type Cluster = "eu" | "us";
type Subset = "" | "v2";

const SUBSETS = { "foo-0": "", "canary-0": "v2" } as const;
const DRAIN_SECONDS = 2;
/** A namespace makes progress when its owner has written there so often. */
const WRITES = 20;
/** A removed pod keeps a namespace for 34 s at least. */
const PROGRESS_MS = 75_000;
const TEST_MS = 300_000;
const CANARY = { tier: "canary" };

describeWithKube("an operator on multicluster-runtime, in namespaces of other clusters", () => {
  let home: Kube;
  let mesh: Mesh;
  let clusters: Readonly<Record<Cluster, DividedCluster>>;
  const pods = {} as Record<keyof typeof SUBSETS, MeshPod>;
  const operators = {} as Record<keyof typeof SUBSETS, Supervised>;

  const addPod = async (name: keyof typeof SUBSETS, version: string) => {
    pods[name] = await mesh.addPod({ name, labels: { version }, egress: true });
    const kubes = { eu: clusters.eu.kube, us: clusters.us.kube };
    operators[name] = await startMulticlusterOperator(mesh, pods[name], kubes, clusterServedBy);
  };
  const outputs = () =>
    Object.entries(operators)
      .map(([name, { child, restarts }]) => `${name}, ${restarts} restarts:\n${child.output().slice(-3_000)}`)
      .join("\n");
  const writesIn = (name: Cluster, namespace: string, sinceMs: number) =>
    clusterWrites(clusters[name].kube, namespace).filter(({ receivedMs }) => receivedMs > sinceMs);
  /** Waits until the subset makes progress in the namespace from now on. */
  const progress = async (name: Cluster, namespace: string, subset: Subset) => {
    const nowMs = Date.now();
    const own = () => writesIn(name, namespace, nowMs).filter(({ pod }) => SUBSETS[pod as keyof typeof SUBSETS] === subset);
    const why = () => `${name}/${namespace} of "${subset}"\n${outputs()}`;
    await eventually(() => expect(own().length, why()).toBeGreaterThan(WRITES), PROGRESS_MS);
  };
  const turnsIn = (name: Cluster, namespace: string, sinceMs: number) => turnsOf(writesIn(name, namespace, sinceMs), SUBSETS);
  const oneWriter = (subset: Subset) => ({ turns: [subset], overlaps: [] });

  beforeAll(async () => {
    const [one, two, three] = await Promise.all([startKube(), startKube(), startKube()]);
    home = one;
    clusters = { eu: createDividedCluster("eu", two), us: createDividedCluster("us", three) };
    mesh = await startMesh({ kube: home, managers: 2 });
    await allowSecrets(mesh);
    for (const cluster of Object.values(clusters)) {
      for (const [namespace, labels] of [
        ["team-a", CANARY],
        ["team-b", {}],
      ] as const) {
        await cluster.createNamespace(namespace, labels);
        await cluster.createConfigMap(namespace, WRITE_LABEL);
      }
      await cluster.join(mesh, DRAIN_SECONDS);
    }
    const app = parse(demoVirtualApp());
    app.spec.route.subRules[0].match.push({ clusterSelector: {}, namespaceSelector: { matchLabels: CANARY } });
    app.spec.route.subsetPublicResources = [{ apiGroups: [""], resources: ["secrets"] }];
    await mesh.apply(stringify(app));
    await addPod("foo-0", "v1");
    await addPod("canary-0", "v2");
  }, 180_000);
  afterAll(async () => {
    for (const operator of Object.values(operators)) await operator.stop(2_000);
    await mesh?.stop();
    for (const cluster of Object.values(clusters ?? {})) await cluster.close();
    for (const kube of [home, clusters?.eu.kube, clusters?.us.kube]) await kube?.stop();
  });

  it(
    "has one writer in each namespace of each cluster",
    async () => {
      for (const name of ["eu", "us"]) await clusterReady(mesh, name);
      const sinceMs = Date.now();
      for (const name of ["eu", "us"] as const) {
        await progress(name, "team-a", "v2");
        await progress(name, "team-b", "");
        expect(turnsIn(name, "team-a", sinceMs)).toEqual(oneWriter("v2"));
        expect(turnsIn(name, "team-b", sinceMs)).toEqual(oneWriter(""));
      }
    },
    TEST_MS,
  );

  it(
    "moves a namespace of one cluster by its label there, also after kill -9 of the leading manager, and no other",
    async () => {
      const sinceMs = Date.now();
      await progress("eu", "team-b", "");
      await clusters.eu.labelNamespace("team-b", CANARY);
      await progress("eu", "team-b", "v2");
      await mesh.managers[0]?.crash();
      await clusters.eu.labelNamespace("team-b", { tier: null });
      await progress("eu", "team-b", "");
      expect(turnsIn("eu", "team-b", sinceMs)).toEqual({ turns: ["", "v2", ""], overlaps: [] });
      for (const [name, namespace, subset] of [
        ["eu", "team-a", "v2"],
        ["us", "team-a", "v2"],
        ["us", "team-b", ""],
      ] as const)
        expect(turnsIn(name, namespace, sinceMs)).toEqual(oneWriter(subset));
    },
    TEST_MS,
  );

  it(
    "keeps its namespaces after kill -9 of a sidecar",
    async () => {
      const sinceMs = Date.now();
      await pods["canary-0"].restartProxy();
      await progress("eu", "team-a", "v2");
      await progress("eu", "team-b", "");
      expect(turnsIn("eu", "team-a", sinceMs)).toEqual(oneWriter("v2"));
      expect(turnsIn("eu", "team-b", sinceMs)).toEqual(oneWriter(""));
    },
    TEST_MS,
  );

  it(
    "writes to the other cluster while one is away, whose namespaces move neither then nor when it is back",
    async () => {
      const sinceMs = Date.now();
      await clusters.eu.kube.crash();
      await progress("us", "team-a", "v2");
      await progress("us", "team-b", "");
      await clusters.us.labelNamespace("team-b", CANARY);
      await progress("us", "team-b", "v2");
      await eventually(async () => expect((await conditionsOf(mesh, "eu")).Reachable).toMatch(/ Unreachable$/), 30_000);
      await clusters.eu.kube.restart();
      const backMs = Date.now();
      await progress("eu", "team-a", "v2");
      await progress("eu", "team-b", "");
      expect(turnsIn("eu", "team-a", backMs)).toEqual(oneWriter("v2"));
      expect(turnsIn("eu", "team-b", backMs)).toEqual(oneWriter(""));
      expect(turnsIn("us", "team-b", sinceMs)).toEqual({ turns: ["", "v2"], overlaps: [] });
      await clusters.us.labelNamespace("team-b", { tier: null });
      await progress("us", "team-b", "");
    },
    TEST_MS,
  );

  it(
    "leaves its namespaces when its pod is removed by force, though the process runs on",
    async () => {
      const sinceMs = Date.now();
      await pods["canary-0"].deleteObject();
      for (const cluster of Object.values(clusters)) await cluster.labelNamespace("team-a", { tier: null });
      for (const name of ["eu", "us"] as const) {
        await progress(name, "team-a", "");
        expect(turnsIn(name, "team-a", sinceMs)).toEqual({ turns: ["v2", ""], overlaps: [] });
      }
      expect(operators["canary-0"].isUp).toBe(true);
    },
    TEST_MS,
  );
});
