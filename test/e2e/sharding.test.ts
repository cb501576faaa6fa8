// A StatefulSet that shards itself, on the real control plane: the StatefulSet controller makes the pods, a root ShardingConfig divides them, and the
// API server's audit log judges who wrote where.

import { afterAll, beforeAll, expect, it } from "vitest";
import { OWNERSHIP_SLICES, SHARDING_CONFIGS } from "../../src/api/resources.ts";
import type { ShardingConfig } from "../../src/api/sharding-config.ts";
import { CONFIG_MAPS, LEASES } from "../../src/kube/client/resources.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { shardPlacer } from "../../src/manager/sharding/children.ts";
import { storedPlacement } from "../../src/manager/sharding/stored-placement.ts";
import { checkOwnership, violationText } from "../chaos/ownership-check.ts";
import { eventually } from "../support/eventually.ts";
import { injectedWorkload } from "../support/injected-workload.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl, tryKubectl } from "../support/kubectl.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { type PodRunner, startPodRunner } from "../support/pod-runner.ts";
import { proxyReady } from "../support/proxy-launcher.ts";
import { readMetrics } from "../support/proxy-metrics.ts";
import { describeWithKube } from "../support/requirements.ts";
import { reconcileAll } from "../support/sharding/reconcile-all.ts";
import { type LoadAnswer, startWriteLoad, type WriteLoad } from "../support/sharding/write-load.ts";
import { familyRoot } from "../support/sharding-config.ts";

const NAMESPACE = "foo-system";
const ROOT = { namespace: NAMESPACE, name: "foo-operator" };
const TEAMS = Array.from({ length: 24 }, (_, index) => `team-${String(index).padStart(2, "0")}`);
const CANARY_TEAM = "team-07";

// As in KusionStack's own sample, the selector names one pod. It leaves out none.
const selector = { matchExpressions: [{ key: "statefulset.kubernetes.io/pod-name", operator: "In", values: ["foo-0"] }] };
const root = (more: object = {}) => {
  const { spec, ...rest } = familyRoot(ROOT, {
    statefulSet: "foo",
    canary: { replicas: 1, inNamespaces: [CANARY_TEAM] },
    auto: { everyShardReplicas: 1, graceSeconds: 3600, maxMovedPercentPerHour: 10_000 },
    resources: [
      ["demo.ctrlmesh.io", "foos"],
      ["", "configmaps"],
    ],
    ...more,
  });
  return JSON.stringify({ ...rest, spec: { ...spec, selector } });
};

describeWithKube("a StatefulSet that shards itself", () => {
  let kube: Kube;
  let mesh: Mesh;
  let runner: PodRunner;
  let load: WriteLoad | undefined;

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
  /** Who may write in a namespace, and since when at the earliest. */
  const timeline: { readonly sinceMs: number; readonly ownerOf: (namespace: string) => string }[] = [];
  const ownersNow = async () => {
    const { spec, ...rest } = await config();
    const placement = storedPlacement(rest);
    if (spec.root === undefined || placement === undefined) throw new Error("the root has no placement");
    return shardPlacer(spec.root, placement);
  };
  const placementText = async () => {
    const { spec: _, ...rest } = await config();
    return JSON.stringify(storedPlacement(rest));
  };
  /** Calls `act` while namespaces move: no shard that may lose some of them or gain some answers meanwhile. */
  const whileMoving = async (change: () => Promise<unknown>, act: () => Promise<void>) => {
    // Which of them it is depends on the placements before.
    const proxies = ["foo-1", "foo-2", "foo-3"].flatMap((name) => runner.pods.get(name)?.processes.proxy ?? []);
    for (const proxy of proxies) proxy.kill("SIGSTOP");
    const before = await placementText();
    await change();
    await eventually(async () => expect(await placementText()).not.toBe(before), 60_000);
    // Granted at once if the losing pods have ended by then, and on a busy machine over before a status with the handover is written.
    await eventually(async () => expect((await config()).status?.handover).toBeDefined(), 10_000).catch(() => undefined);
    await act();
    for (const proxy of proxies) proxy.kill("SIGCONT");
  };
  /** @param midway called while namespaces move */
  const scaleTo = async (replicas: number, midway?: () => Promise<void>) => {
    const sinceMs = Date.now();
    if (midway === undefined) await scale(replicas);
    else await whileMoving(() => scale(replicas), midway);
    await untilShards(replicas);
    timeline.push({ sinceMs, ownerOf: await ownersNow() });
  };
  /** The writes of two shards in one namespace, by the audit log. */
  const twoWriters = () => {
    const { violations, checked } = checkOwnership({
      writes: mesh.podWrites(),
      subsetOf: shardOfPod,
      placeOf: ({ namespace }) => (TEAMS.includes(namespace) ? namespace : undefined),
      ownersOf: (namespace) => timeline.map(({ sinceMs, ownerOf }) => ({ sinceMs, subset: ownerOf(namespace) })),
    });
    expect(checked).toBeGreaterThan(TEAMS.length);
    return violations.map(violationText);
  };

  const killManager = async () => {
    await mesh.killManager();
    await mesh.startManager();
  };
  /** Who led the whole family since then, from the audit log: a pod that writes the lock holds it. */
  const leadersSince = (sinceMs: number) =>
    mesh
      .podWrites()
      .filter(({ resource, name, code, answeredMs }) => {
        return resource === "leases" && name === "foo-operator" && code < 300 && answeredMs > sinceMs;
      })
      .map(({ pod, receivedMs }, index) => ({ sinceMs: index === 0 ? sinceMs : receivedMs, ownerOf: () => shardOfPod(pod) }));
  /** Ends the family while a scaling moves namespaces: then one pod leads, and the shards write no more. */
  const endMidway = async (replicas: number, end: () => Promise<unknown>, left: readonly string[]) => {
    const sinceMs = Date.now();
    let endedMs = sinceMs;
    await whileMoving(
      () => scale(replicas),
      async () => {
        timeline.push({ sinceMs, ownerOf: await ownersNow() });
        endedMs = Date.now();
        await end();
      },
    );
    await Promise.all([reconcileAll(mesh, TEAMS), untilGone(left)]);
    await reconcileAll(mesh, TEAMS);
    timeline.push(...leadersSince(endedMs));
    expect(twoWriters()).toEqual([]);
  };
  /**
   * Where no namespace moves, each write of the owner passes, and each other write is refused. Only a pod whose shard has nothing yet may be told to
   * try again: after a change of the leading manager it is not known for a moment what the others have.
   */
  const expectNoWaits = ({ answers }: WriteLoad, during: typeof timeline) => {
    const staying = TEAMS.filter((namespace) => new Set(during.map(({ ownerOf }) => ownerOf(namespace))).size === 1);
    const isOwn = ({ pod, namespace }: LoadAnswer) => shardOfPod(pod) === during[0]?.ownerOf(namespace);
    const known = answers.filter(({ namespace }) => staying.includes(namespace));
    const isRight = (answer: LoadAnswer) =>
      isOwn(answer) ? answer.code === 200 : answer.code === 403 || (answer.pod === "foo-4" && answer.code === 503);
    expect(known.filter((answer) => !isRight(answer))).toEqual([]);
    expect(new Set(known.filter(isOwn).map(({ namespace }) => namespace))).toEqual(new Set(staying));
    expect(staying.length).toBeLessThan(TEAMS.length);
  };
  /** The root has no finalizer then, and children are gone. */
  const untilGone = (left: readonly string[]) =>
    eventually(async () => {
      const { items } = await mesh.client.list(SHARDING_CONFIGS, { namespace: NAMESPACE });
      expect(items.map(({ metadata }) => [metadata.name, metadata.finalizers ?? []])).toEqual(left.map((name) => [name, []]));
    }, 60_000);

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    mesh = await startMesh({ kube });
    for (const name of TEAMS) {
      await mesh.createNamespace(name);
      await mesh.createFoo(name, "one", "first");
      await mesh.client.create(CONFIG_MAPS, { metadata: { namespace: name, name: "load" } });
    }
    await mesh.apply(root());
    const options = { kube, client: mesh.client, namespace: NAMESPACE, lockName: "foo-operator" };
    runner = startPodRunner({ ...options, manager: String(mesh.manager.ready.grpc) });
    await scale(4);
    await untilShards(4);
    timeline.push({ sinceMs: 0, ownerOf: await ownersNow() });
  }, 180_000);
  afterAll(async () => {
    await load?.stop().catch(() => undefined);
    await runner?.stop();
    await mesh?.stop();
    await kube?.stop();
  });

  it("has a child and a lock for each shard, and every namespace has one writing shard", { timeout: 90_000 }, async () => {
    await eventually(async () => {
      expect(await configs()).toEqual(["foo-0-canary", "foo-1-normal", "foo-2-normal", "foo-3-normal", ROOT.name]);
    });
    await reconcileAll(mesh, TEAMS);
    for (const namespace of TEAMS) expect([namespace, writersOf(namespace).length]).toEqual([namespace, 1]);
    expect(writersOf(CANARY_TEAM)).toEqual(["foo-0-canary"]);
    expect(new Set(TEAMS.flatMap(writersOf)).size).toBe(4);
    for (const pod of ["foo-0", "foo-1", "foo-2", "foo-3"]) {
      const lease = { namespace: NAMESPACE, name: `foo-operator---${shardOfPod(pod)}` };
      expect((await mesh.client.get(LEASES, lease)).spec?.holderIdentity).toMatch(new RegExp(`^${pod}_`));
    }
    expect(condition(await config(), "TrafficIntercepted")).toMatchObject({
      reason: "AllInjected",
      message: expect.stringMatching(/^4 pods with the proxy, none without; spec\.selector does not match pod foo-1 and 2 more:/),
    });
    // The statuses of children are written a few seconds later.
    await eventually(async () => {
      const shown = await kubectl(kube.kubeconfig, ["get", "shard", "-n", NAMESPACE, "--no-headers"]);
      expect(shown).toMatch(/^foo-1-normal\s+foo-operator\s+foo-1-normal\s+1\/1\s+\d+/m);
    }, 20_000);
  });

  it("has the shard of each namespace in the slices of its root", async () => {
    const ownerOf = await ownersNow();
    await eventually(async () => {
      const { items } = await mesh.client.list(OWNERSHIP_SLICES, { namespace: NAMESPACE });
      expect(items[0]?.metadata.ownerReferences).toMatchObject([{ kind: "ShardingConfig", name: ROOT.name }]);
      const entries = items.flatMap(({ ownership }) => ownership);
      for (const team of TEAMS) {
        const { state, owners } = entries.find(({ namespaces }) => namespaces?.includes(team)) ?? {};
        const resources = ["foos.demo.ctrlmesh.io", "configmaps"];
        expect([team, state, owners]).toEqual([team, "Owned", [{ subset: ownerOf(team), resources }]]);
      }
    }, 20_000);
  });

  it("moves no more than it must when it is scaled under load; where nothing moves, no write waits", {
    timeout: 180_000,
  }, async () => {
    load = startWriteLoad(runner, TEAMS, "load");
    await scaleTo(5);
    await reconcileAll(mesh, TEAMS);
    await scaleTo(4);
    await reconcileAll(mesh, TEAMS);
    await load.stop();
    const [before, during] = timeline;
    const gained = TEAMS.filter((namespace) => before?.ownerOf(namespace) !== during?.ownerOf(namespace));
    expect(gained.length).toBeGreaterThan(0);
    for (const namespace of gained) expect(during?.ownerOf(namespace)).toBe("foo-4-normal");
    expect(twoWriters()).toEqual([]);
    expectNoWaits(load, timeline);
    for (const name of ["foo-0", "foo-1", "foo-2", "foo-3"]) {
      const { proxy } = runner.pods.get(name)?.processes ?? {};
      if (proxy === undefined) throw new Error(`pod ${name} has no proxy`);
      const metrics = await readMetrics(proxyReady(proxy).healthUrl);
      const fenced = load.answers.filter(({ pod, code }) => pod === name && code === 503).length;
      const requests = (labels: object) =>
        metrics.sum("ctrlmesh_proxy_requests_total", { verb: "patch", code: "503", ...labels });
      expect([name, requests({ resource: "configmaps" })]).toEqual([name, fenced]);
      if (name === "foo-0") expect(requests({})).toBe(0);
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
    await mesh.client.create(CONFIG_MAPS, { metadata: { namespace: mine, name: "load" } });
  });

  it("loses no placement and lets no two shards write when the manager is killed midway of a scaling", {
    timeout: 120_000,
  }, async () => {
    load = startWriteLoad(runner, TEAMS, "load");
    await scaleTo(5, killManager);
    await scaleTo(4);
    await load.stop();
    expectNoWaits(load, timeline.slice(-3));
    await reconcileAll(mesh, TEAMS);
    expect(twoWriters()).toEqual([]);
  });

  it("has one writer in each namespace while the root is disabled midway of a scale-up, and divides again afterwards", {
    timeout: 120_000,
  }, async () => {
    await endMidway(5, () => mesh.apply(root({ disable: true })), [ROOT.name]);
    const view = runner.pods.get("foo-2")?.processes.access?.kubeconfig ?? "";
    const shown = await kubectl(view, ["get", "foos", "-A", "-o", "name"]);
    expect(shown.split("\n").filter((name) => name !== "")).toHaveLength(TEAMS.length);

    const sinceMs = Date.now();
    await mesh.apply(root({ disable: false }));
    await untilShards(5);
    timeline.push({ sinceMs, ownerOf: await ownersNow() });
    await reconcileAll(mesh, TEAMS);
    expect(twoWriters()).toEqual([]);
  });

  it("leaves nothing when the root is deleted midway of a scale-down and the manager is killed then, and no part of the mesh has ever written a label", {
    timeout: 120_000,
  }, async () => {
    const deleteRoot = async () => {
      await kubectl(kube.kubeconfig, ["delete", "shard", ROOT.name, "-n", NAMESPACE, "--wait=false"]);
      await killManager();
    };
    await endMidway(4, deleteRoot, []);
    const get = async (...args: string[]): Promise<readonly KubeObject[]> =>
      JSON.parse(await kubectl(kube.kubeconfig, ["get", ...args, "-o", "json"])).items;
    for (const { metadata } of await get("statefulsets,pods", "-n", NAMESPACE)) {
      expect([...Object.keys(metadata.annotations ?? {}), ...(metadata.finalizers ?? [])].join()).not.toContain("ctrlmesh");
    }
    for (const { metadata } of await get("namespaces")) {
      expect(Object.keys(metadata.labels ?? {})).toEqual(["kubernetes.io/metadata.name"]);
    }
    await eventually(async () => expect(await get("ownershipslices", "-n", NAMESPACE)).toEqual([]), 30_000);
    const writes = kube
      .audit()
      .filter(
        ({ userAgent, objectRef }) =>
          userAgent?.startsWith("ctrlmesh-manager/") && objectRef?.apiGroup !== "authorization.k8s.io",
      );
    expect([...new Set(writes.map(({ objectRef }) => objectRef?.resource))].sort()).toEqual([
      "events",
      "leases",
      "managerstates",
      "ownershipslices",
      "shardingconfigs",
    ]);
  });
});
