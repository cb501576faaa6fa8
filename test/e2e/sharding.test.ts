// A StatefulSet that shards itself, on the real control plane: the StatefulSet controller makes the pods, a root ShardingConfig divides them, and the
// API server's audit log judges who wrote where.
import { afterAll, beforeAll, expect, it } from "vitest";
import { SHARDING_CONFIGS } from "../../src/api/resources.ts";
import type { ShardingConfig } from "../../src/api/sharding-config.ts";
import { LEASES } from "../../src/kube/client/resources.ts";
import { eventually } from "../support/eventually.ts";
import { injectedWorkload } from "../support/injected-workload.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl, tryKubectl } from "../support/kubectl.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { type PodRunner, startPodRunner } from "../support/pod-runner.ts";
import { describeWithKube } from "../support/requirements.ts";

const NAMESPACE = "foo-system";
const ROOT = { namespace: NAMESPACE, name: "foo-operator" };
const TEAMS = Array.from({ length: 24 }, (_, index) => `team-${String(index).padStart(2, "0")}`);
const CANARY_TEAM = "team-07";

const root = (more: object = {}) =>
  JSON.stringify({
    apiVersion: "ctrlmesh.kusionstack.io/v1alpha1",
    kind: "ShardingConfig",
    metadata: ROOT,
    spec: {
      controller: { leaderElectionName: "foo-operator" },
      onLoss: "InPlace",
      root: {
        prefix: "foo",
        targetStatefulSet: "foo",
        placement: "Balanced",
        canary: { replicas: 1, inNamespaces: [CANARY_TEAM] },
        auto: { everyShardReplicas: 1, graceSeconds: 3600 },
        resourceSelector: [
          { relateResources: [{ apiGroups: ["demo.ctrlmesh.io"], resources: ["foos"] }] },
          { relateResources: [{ apiGroups: [""], resources: ["configmaps"] }] },
        ],
        ...more,
      },
    },
  });

describeWithKube("a StatefulSet that shards itself", () => {
  let kube: Kube;
  let mesh: Mesh;
  let runner: PodRunner;

  const scale = (replicas: number) => mesh.apply(injectedWorkload({ kind: "StatefulSet", name: "foo", replicas, version: "v1" }));
  const config = (name: string = ROOT.name) => mesh.client.get(SHARDING_CONFIGS, { namespace: NAMESPACE, name });
  const configs = async () =>
    (await mesh.client.list(SHARDING_CONFIGS, { namespace: NAMESPACE })).items.map(({ metadata }) => metadata.name ?? "").sort();
  const condition = ({ status }: ShardingConfig, type: string) => status?.conditions?.find((each) => each.type === type);
  const shardOfPod = (pod: string) => (pod === "foo-0" ? "foo-0-canary" : `foo-${pod.slice("foo-".length)}-normal`);
  const ownedBy = async () =>
    Object.fromEntries(
      ((await config()).status?.subsets ?? []).flatMap(({ name, namespaces }) =>
        name === "default" ? [] : [[name, namespaces]],
      ),
    );
  const untilShards = (shards: number) =>
    eventually(async () => {
      const now = await config();
      expect(now.status?.root?.childShardingConfigs).toHaveLength(shards);
      expect(condition(now, "Converged")).toMatchObject({ status: "True", observedGeneration: now.metadata.generation });
      expect(Math.min(...Object.values(await ownedBy()))).toBeGreaterThan(0);
      expect(now.status?.namespaces?.moving).toBe(0);
    }, 60_000);
  /** The shards that wrote Foos of a namespace, in the order of their writes; a shard that writes again is listed again. */
  const writersOf = (namespace: string) =>
    mesh
      .podWrites()
      .filter((write) => write.namespace === namespace && write.resource === "foos/status" && write.code < 300)
      .map(({ pod }) => shardOfPod(pod))
      .filter((shard, index, all) => shard !== all[index - 1]);
  const sayAll = async (message: string) => {
    await Promise.all(
      TEAMS.map(async (namespace) => {
        const { resourceVersion } = (await mesh.foo(namespace, "one")).metadata;
        const body = JSON.stringify({ spec: { message: `${message} ${resourceVersion}` } });
        await kubectl(kube.kubeconfig, ["patch", "foo", "one", "-n", namespace, "--type=merge", "-p", body]);
      }),
    );
    await eventually(async () => {
      for (const namespace of TEAMS) {
        const foo = await mesh.foo(namespace, "one");
        expect([namespace, foo.status?.observedGeneration]).toEqual([namespace, foo.metadata.generation]);
      }
    }, 40_000);
  };

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    mesh = await startMesh({ kube });
    for (const name of TEAMS) {
      await mesh.createNamespace(name);
      await mesh.createFoo(name, "one", "first");
    }
    await mesh.apply(root());
    const options = { kube, client: mesh.client, namespace: NAMESPACE, lockName: "foo-operator" };
    runner = startPodRunner({ ...options, manager: String(mesh.manager.ready.grpc) });
    await scale(4);
    await untilShards(4);
  }, 180_000);
  afterAll(async () => {
    await runner?.stop();
    await mesh?.stop();
    await kube?.stop();
  });

  it("has a child and a lock for each shard, and every namespace has one writing shard", { timeout: 90_000 }, async () => {
    await eventually(async () => {
      expect(await configs()).toEqual(["foo-0-canary", "foo-1-normal", "foo-2-normal", "foo-3-normal", ROOT.name]);
    });
    await sayAll("second");
    for (const namespace of TEAMS) expect([namespace, writersOf(namespace).length]).toEqual([namespace, 1]);
    expect(writersOf(CANARY_TEAM)).toEqual(["foo-0-canary"]);
    expect(new Set(TEAMS.flatMap(writersOf)).size).toBe(4);
    const { holderIdentity } =
      (await mesh.client.get(LEASES, { namespace: NAMESPACE, name: "foo-operator---foo-2-normal" })).spec ?? {};
    expect(holderIdentity).toMatch(/^foo-2_/);
    const shown = await kubectl(kube.kubeconfig, ["get", "shard", "-n", NAMESPACE, "--no-headers"]);
    expect(shown).toMatch(/^foo-1-normal\s+foo-operator\s+foo-1-normal\s+1\/1\s+\d+/m);
  });

  it("moves no more than it must when it is scaled, and no namespace has two writers", { timeout: 180_000 }, async () => {
    const before = new Map(TEAMS.map((namespace) => [namespace, writersOf(namespace).at(-1)]));
    await scale(5);
    await untilShards(5);
    await sayAll("third");
    const moved = TEAMS.filter((namespace) => writersOf(namespace).at(-1) !== before.get(namespace));
    expect(new Set(moved.map((namespace) => writersOf(namespace).at(-1)))).toEqual(new Set(["foo-4-normal"]));
    await scale(4);
    await untilShards(4);
    await sayAll("fourth");
    // A shard that wrote again after it had lost a namespace would be listed more often.
    for (const namespace of TEAMS) {
      expect([namespace, writersOf(namespace).length]).toEqual([namespace, moved.includes(namespace) ? 3 : 1]);
    }
  });

  it("repairs a child that is edited or deleted, and nothing moves", { timeout: 60_000 }, async () => {
    const { lastHandover } = (await config()).status ?? {};
    const before = await config("foo-1-normal");
    await tryKubectl(kube.kubeconfig, [
      "patch",
      "shard",
      "foo-1-normal",
      "-n",
      NAMESPACE,
      "--type=merge",
      "-p",
      '{"spec":{"limits":[]}}',
    ]);
    const patch = JSON.stringify({ spec: { limits: [{ relateResources: [{ apiGroups: [""], resources: ["pods"] }] }] } });
    await kubectl(kube.kubeconfig, ["patch", "shard", "foo-1-normal", "-n", NAMESPACE, "--type=merge", "-p", patch]);
    await eventually(async () => expect((await config("foo-1-normal")).spec).toEqual(before.spec));
    await kubectl(kube.kubeconfig, ["delete", "shard", "foo-2-normal", "-n", NAMESPACE, "--wait=false"]);
    await eventually(async () => expect((await config("foo-2-normal")).metadata.deletionTimestamp).toBeUndefined());
    expect((await config()).status?.lastHandover).toEqual(lastHandover);
  });

  it("refuses each write into another shard's namespaces and names the owner; no selector shows more", async () => {
    const owner = (namespace: string) => writersOf(namespace).at(-1) ?? "";
    const foreign = TEAMS.find((namespace) => owner(namespace) === "foo-2-normal") ?? "";
    const own = TEAMS.filter((namespace) => owner(namespace) === "foo-1-normal");
    const mine = own[0] ?? "";
    for (const namespace of [foreign, mine]) {
      await kubectl(kube.kubeconfig, ["create", "configmap", "kept", "-n", namespace]);
      // A planted label, with the value that would make it the other shard's.
      const planted = `ctrlmesh.kusionstack.io/namespace=${mine}`;
      await kubectl(kube.kubeconfig, ["label", "foo", "one", "-n", namespace, planted]);
    }
    // Only the mesh refuses anything.
    const all = ["create", "clusterrolebinding", "all", "--clusterrole=cluster-admin"];
    await kubectl(kube.kubeconfig, [...all, `--serviceaccount=${NAMESPACE}:foo-operator`]);
    const { kubeconfig = "" } = runner.pods.get("foo-1")?.processes.access ?? {};
    const collection = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps`;
    const stored = JSON.stringify(await mesh.foo(foreign, "one"));
    const path = `/apis/demo.ctrlmesh.io/v1/namespaces/${foreign}/foos/one`;
    for (const args of [
      ["replace", "--raw", path, "-f", "-"],
      ["annotate", "foo", "one", "-n", foreign, "a=b"],
      ["delete", "--raw", path],
      ["delete", "--raw", `${collection(foreign)}?labelSelector=a!%3Db`],
      ["create", "configmap", "another", "-n", foreign],
    ]) {
      const { code, stderr } = await tryKubectl(kubeconfig, args, stored);
      expect([args, code, stderr]).toEqual([
        args,
        1,
        expect.stringMatching(/belongs to subset "foo-2-normal"; .* ShardingConfigs of family/),
      ]);
    }
    for (const selector of [
      [],
      ["-l", `ctrlmesh.kusionstack.io/namespace in (${foreign},${mine})`],
      ["-l", "a!=b"],
      ["--field-selector", "metadata.name=one"],
    ]) {
      const shown = await kubectl(kubeconfig, ["get", "foos", "-A", "--no-headers", ...selector]);
      const seen = shown.split("\n").flatMap((line) => line.split(/\s+/)[0] || []);
      expect([selector, seen.filter((namespace) => !own.includes(namespace))]).toEqual([selector, []]);
      expect(seen).toContain(mine);
    }
    await kubectl(kubeconfig, ["delete", "--raw", collection(mine)]);
    const left = async (namespace: string) => kubectl(kube.kubeconfig, ["get", "configmap", "-n", namespace, "-o", "name"]);
    expect(await left(mine)).not.toContain("kept");
    expect(await left(foreign)).toContain("kept");
  });

  it("loses no placement and lets no two shards write when the manager is killed midway of a scale-up", {
    timeout: 120_000,
  }, async () => {
    const before = new Map(TEAMS.map((namespace) => [namespace, writersOf(namespace).length]));
    await scale(5);
    await eventually(async () => {
      expect(JSON.parse((await config()).metadata.annotations?.["ctrlmesh.kusionstack.io/placement"] ?? "{}").shards).toBe(4);
    }, 30_000);
    await mesh.killManager();
    await mesh.startManager();
    await untilShards(5);
    await sayAll("fifth");
    const gained = TEAMS.filter((namespace) => writersOf(namespace).length !== before.get(namespace));
    for (const namespace of gained) {
      expect([namespace, writersOf(namespace).length]).toEqual([namespace, (before.get(namespace) ?? 0) + 1]);
      expect(writersOf(namespace).at(-1)).toBe("foo-4-normal");
    }
    expect(gained.length).toBeGreaterThan(0);
  });

  it("gives the whole view back while the root is disabled, and divides again afterwards", { timeout: 120_000 }, async () => {
    const disable = (value: boolean) => mesh.apply(root({ disable: value }));
    await disable(true);
    await eventually(async () => {
      expect(await configs()).toEqual([ROOT.name]);
      expect((await config()).metadata.finalizers ?? []).toEqual([]);
    }, 40_000);
    const view = runner.pods.get("foo-1")?.processes.access?.kubeconfig ?? "";
    const shown = await kubectl(view, ["get", "foos", "-A", "-o", "name"]);
    expect(shown.split("\n").filter((name) => name !== "")).toHaveLength(TEAMS.length);
    await disable(false);
    await untilShards(5);
  });

  it("gives the whole view back when the root is deleted, and its children go", { timeout: 90_000 }, async () => {
    await kubectl(kube.kubeconfig, ["delete", "shard", ROOT.name, "-n", NAMESPACE, "--wait=false"]);
    await eventually(async () => {
      expect(await configs()).toEqual([]);
    }, 60_000);
  });
});
