// The rollout of a sharded StatefulSet on the real control plane: the StatefulSet controller makes the pods and their revisions, and the API
// server's audit log says in which order they were evicted, and who wrote meanwhile. The webhooks inject the pods.

import { afterAll, beforeAll, expect, it } from "vitest";
import { INJECTED_LABEL } from "../../src/api/injected-pod.ts";
import { SHARDING_CONFIGS } from "../../src/api/resources.ts";
import { ROLL_EXPECTED } from "../../src/api/sharding-keys.ts";
import { PODS, REVISION_LABEL, STATEFUL_SETS } from "../../src/kube/client/resources.ts";
import { createShardingSource } from "../../src/manager/sharding/sharding-source.ts";
import { storedPlacement } from "../../src/manager/sharding/stored-placement.ts";
import { eventually } from "../support/eventually.ts";
import { injectedWorkload } from "../support/injected-workload.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { type PodRunner, startPodRunner } from "../support/pod-runner.ts";
import { describeWithKube } from "../support/requirements.ts";
import { reconcileAll } from "../support/sharding/reconcile-all.ts";
import { familyRoot } from "../support/sharding-config.ts";
import { startWebhookWorld, type WebhookWorld } from "../support/webhook-world.ts";

const NAMESPACE = "foo-system";
const ROOT = { namespace: NAMESPACE, name: "foo-operator" };
const TEAMS = ["team-a", "team-b", "team-c", "team-d", "team-e", "team-f"];
const POD_NAMES = ["foo-0", "foo-1", "foo-2", "foo-3"];

const root = JSON.stringify(
  familyRoot(ROOT, {
    statefulSet: "foo",
    canary: { replicas: 1, inNamespaces: ["team-a"] },
    auto: { everyShardReplicas: 2 },
    rollout: { soakSeconds: 1 },
    resources: [["demo.ctrlmesh.io", "foos"]],
  }),
);

const NO_EVICTION = JSON.stringify({
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name: "none", namespace: NAMESPACE },
  spec: { maxUnavailable: 0, selector: { matchLabels: { version: "v1" } } },
});

describeWithKube("the rollout of a StatefulSet that shards itself", () => {
  let kube: Kube;
  let mesh: Mesh;
  let runner: PodRunner;
  let webhooks: WebhookWorld;

  const workload = (release: string) =>
    injectedWorkload({
      kind: "StatefulSet",
      name: "foo",
      replicas: 4,
      version: "v1",
      release,
      rolling: "all",
      isInjected: false,
    });
  const config = () => mesh.client.get(SHARDING_CONFIGS, ROOT);
  const pauseRollout = (paused: boolean) =>
    mesh.client.patch(SHARDING_CONFIGS, ROOT, { type: "merge", body: { spec: { root: { rollout: { paused } } } } });
  const pod = (name: string) => mesh.client.get(PODS, { namespace: NAMESPACE, name });
  /** A pod of the StatefulSet as the API server would create it now. */
  const tried = () => {
    const metadata = { namespace: NAMESPACE, name: "foo-9", labels: { "statefulset.kubernetes.io/pod-name": "foo-9" } };
    const spec = { serviceAccountName: "foo-operator", containers: [{ name: "operator", image: "example.invalid/foo" }] };
    return mesh.client.create(PODS, { metadata, spec }, { dryRun: true });
  };
  const revisions = async () => {
    const all = await Promise.all(POD_NAMES.map(pod));
    return all.map(({ metadata }) => metadata.labels?.[REVISION_LABEL]);
  };
  const updateRevision = async () =>
    (await mesh.client.get(STATEFUL_SETS, { namespace: NAMESPACE, name: "foo" })).status?.updateRevision ?? "";
  const leaderOf = async (shard: string) => (await config()).status?.subsets?.find(({ name }) => name === shard)?.leader ?? "";
  /** In order, each pod once. */
  const evicted = () => {
    const names = kube.audit().flatMap(({ objectRef, responseStatus }) => {
      const isEviction = objectRef?.resource === "pods" && objectRef.subresource === "eviction";
      return isEviction && (responseStatus?.code ?? 500) < 300 ? [objectRef.name ?? ""] : [];
    });
    return [...new Set(names)];
  };
  const shardOf: Readonly<Record<string, string>> = {
    "foo-0": "foo-0-canary",
    "foo-1": "foo-1-normal",
    "foo-2": "foo-1-normal",
    "foo-3": "foo-2-normal",
  };
  const writersOf = (namespace: string) => {
    const writes = mesh.podWrites().filter((write) => write.namespace === namespace && write.resource === "foos/status");
    return [...new Set(writes.filter(({ code }) => code < 300).map((write) => shardOf[write.pod]))];
  };

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    mesh = await startMesh({ kube });
    for (const name of TEAMS) {
      await mesh.createNamespace(name);
      await mesh.createFoo(name, "one", "first");
    }
    await mesh.apply(root);
    webhooks = await startWebhookWorld(kube, [createShardingSource()]);
    await eventually(async () => expect((await tried()).metadata.labels).toHaveProperty([INJECTED_LABEL]), 30_000);
    const options = { kube, client: mesh.client, namespace: NAMESPACE, lockName: "foo-operator" };
    runner = startPodRunner({ ...options, manager: String(mesh.manager.ready.grpc) });
    await mesh.apply(workload("one"));
    await eventually(async () => {
      for (const shard of new Set(Object.values(shardOf))) expect(await leaderOf(shard)).not.toBe("");
      expect((await config()).status?.rollout).toMatchObject({ done: 4, total: 4 });
    }, 60_000);
  }, 120_000);
  afterAll(async () => {
    await runner?.stop();
    await webhooks?.stop();
    await mesh?.stop();
    await kube?.stop();
  });

  it("restarts the canary first and leaders last, when the PodDisruptionBudget allows it, and no namespace moves", {
    timeout: 120_000,
  }, async () => {
    const before = await config();
    const placed = storedPlacement(before);
    const old = await updateRevision();
    await pauseRollout(true);
    await mesh.apply(workload("two"));
    await eventually(async () => expect((await config()).status?.rollout?.waitingFor).toBe("Paused"));
    const { uid } = (await pod("foo-2")).metadata;
    await kubectl(kube.kubeconfig, ["delete", "pod", "foo-2", "-n", NAMESPACE, "--wait=false"]);
    await eventually(async () => {
      const again = await pod("foo-2");
      expect(again.metadata.uid).not.toBe(uid);
      expect(again.metadata.annotations).toMatchObject({ release: "one" });
      expect(again.status?.conditions?.find(({ type }) => type === "Ready")?.status).toBe("True");
    }, 40_000);
    expect(await revisions()).toEqual([old, old, old, old]);
    await eventually(async () => expect(await leaderOf("foo-1-normal")).not.toBe(""), 30_000);
    const leader = await leaderOf("foo-1-normal");
    await mesh.apply(NO_EVICTION);
    const budget = (path: string) =>
      kubectl(kube.kubeconfig, ["get", "pdb", "none", "-n", NAMESPACE, "-o", `jsonpath={.status.${path}}`]);
    await eventually(async () => expect(await budget("currentHealthy")).toBe("4"));
    await pauseRollout(false);
    await eventually(async () =>
      expect((await config()).status?.rollout).toMatchObject({ waitingFor: "PodDisruptionBudget", pod: "foo-0", done: 0 }),
    );
    await reconcileAll(mesh, TEAMS);
    expect(evicted()).toEqual([]);
    await kubectl(kube.kubeconfig, ["delete", "pdb", "none", "-n", NAMESPACE]);
    await reconcileAll(mesh, TEAMS);
    await eventually(async () => {
      const revision = await updateRevision();
      expect((await config()).status?.rollout).toEqual({ revision, done: 4, total: 4, message: expect.any(String) });
      expect(await revisions()).toEqual([revision, revision, revision, revision]);
    }, 80_000);
    expect(evicted()).toEqual(["foo-0", leader === "foo-1" ? "foo-2" : "foo-1", leader, "foo-3"]);
    await reconcileAll(mesh, TEAMS);
    const after = await config();
    expect(storedPlacement(after)).toMatchObject({ active: placed?.active, map: placed?.map });
    expect(after.status?.lastHandover).toEqual(before.status?.lastHandover);
    for (const namespace of TEAMS) expect([namespace, writersOf(namespace).length]).toEqual([namespace, 1]);
    const events = await kubectl(kube.kubeconfig, ["get", "events", "-n", NAMESPACE, "-o", "jsonpath={.items[*].reason}"]);
    expect(
      events
        .split(" ")
        .filter((reason) => reason.startsWith("Rollout"))
        .sort(),
    ).toEqual(["RolloutFinished", ...["RolloutShard", "RolloutShard", "RolloutShard"], "RolloutStarted"]);
  });

  it("leaves no annotation, finalizer or webhook entry when the root is deleted", { timeout: 60_000 }, async () => {
    await kubectl(kube.kubeconfig, ["delete", "shard", ROOT.name, "-n", NAMESPACE, "--wait=false"]);
    const get = async (...args: string[]) => kubectl(kube.kubeconfig, ["get", ...args]);
    await eventually(async () => {
      expect(await get("shard", "-n", NAMESPACE, "-o", "name")).toBe("");
      const statefulSet = await mesh.client.get(STATEFUL_SETS, { namespace: NAMESPACE, name: "foo" });
      expect(statefulSet.metadata.annotations).not.toHaveProperty([ROLL_EXPECTED]);
      expect(await get("mutatingwebhookconfigurations", "-o", "yaml")).not.toContain(NAMESPACE);
    }, 40_000);
  });
});
