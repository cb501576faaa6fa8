// A StatefulSet that shards itself, on the real control plane: the StatefulSet controller makes the pods, a root ShardingConfig divides them, and the
// API server's audit log judges who wrote where. Its end in the middle of a scaling: test/nightly/sharding-ends.test.ts.
import { afterAll, beforeAll, expect, it } from "vitest";
import { OWNERSHIP_SLICES } from "../../src/api/resources.ts";
import { CONFIG_MAPS, LEASES } from "../../src/kube/client/resources.ts";
import { eventually } from "../support/eventually.ts";
import { kubectl, tryKubectl } from "../support/kubectl.ts";
import { proxyReady } from "../support/proxy-launcher.ts";
import { readMetrics } from "../support/proxy-metrics.ts";
import { describeWithKube } from "../support/requirements.ts";
import { reconcileAll } from "../support/sharding/reconcile-all.ts";
import {
  CANARY_TEAM,
  condition,
  NAMESPACE,
  ROOT,
  type ShardedWorld,
  shardOfPod,
  startShardedWorld,
  TEAMS,
} from "../support/sharding/sharded-world.ts";
import { type LoadAnswer, startWriteLoad, type WriteLoad } from "../support/sharding/write-load.ts";

describeWithKube("a StatefulSet that shards itself", () => {
  let world: ShardedWorld;
  let load: WriteLoad | undefined;

  /**
   * Where no namespace moves, each write of the owner passes, and each other write is refused. Only a pod whose shard has nothing yet may be told to
   * try again: after a change of the leading manager it is not known for a moment what the others have.
   */
  const expectNoWaits = ({ answers }: WriteLoad, during: ShardedWorld["timeline"]) => {
    const staying = TEAMS.filter((namespace) => new Set(during.map(({ ownerOf }) => ownerOf(namespace))).size === 1);
    const isOwn = ({ pod, namespace }: LoadAnswer) => shardOfPod(pod) === during[0]?.ownerOf(namespace);
    const known = answers.filter(({ namespace }) => staying.includes(namespace));
    const isRight = (answer: LoadAnswer) =>
      isOwn(answer) ? answer.code === 200 : answer.code === 403 || (answer.pod === "foo-4" && answer.code === 503);
    expect(known.filter((answer) => !isRight(answer))).toEqual([]);
    expect(new Set(known.filter(isOwn).map(({ namespace }) => namespace))).toEqual(new Set(staying));
    expect(staying.length).toBeLessThan(TEAMS.length);
  };
  beforeAll(async () => {
    world = await startShardedWorld();
  }, 180_000);
  afterAll(async () => {
    await load?.stop().catch(() => undefined);
    await world?.stop();
  });

  it("has a child and a lock for each shard, and every namespace has one writing shard", { timeout: 90_000 }, async () => {
    await eventually(async () => {
      expect(await world.configs()).toEqual(["foo-0-canary", "foo-1-normal", "foo-2-normal", "foo-3-normal", ROOT.name]);
    });
    await reconcileAll(world.mesh, TEAMS);
    for (const namespace of TEAMS) expect([namespace, world.writersOf(namespace).length]).toEqual([namespace, 1]);
    expect(world.writersOf(CANARY_TEAM)).toEqual(["foo-0-canary"]);
    expect(new Set(TEAMS.flatMap(world.writersOf)).size).toBe(4);
    for (const pod of ["foo-0", "foo-1", "foo-2", "foo-3"]) {
      const lease = { namespace: NAMESPACE, name: `foo-operator---${shardOfPod(pod)}` };
      expect((await world.mesh.client.get(LEASES, lease)).spec?.holderIdentity).toMatch(new RegExp(`^${pod}_`));
    }
    expect(condition(await world.config(), "TrafficIntercepted")).toMatchObject({
      reason: "AllInjected",
      message: expect.stringMatching(/^4 pods with the proxy, none without; spec\.selector does not match pod foo-1 and 2 more:/),
    });
    // The statuses of children are written a few seconds later.
    await eventually(async () => {
      const shown = await kubectl(world.kube.kubeconfig, ["get", "shard", "-n", NAMESPACE, "--no-headers"]);
      expect(shown).toMatch(/^foo-1-normal\s+foo-operator\s+foo-1-normal\s+1\/1\s+\d+/m);
    }, 20_000);
  });

  it("has the shard of each namespace in the slices of its root", async () => {
    const ownerOf = await world.ownersNow();
    await eventually(async () => {
      const { items } = await world.mesh.client.list(OWNERSHIP_SLICES, { namespace: NAMESPACE });
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
    load = startWriteLoad(world.runner, TEAMS, "load");
    await world.scaleTo(5);
    await reconcileAll(world.mesh, TEAMS);
    await world.scaleTo(4);
    await reconcileAll(world.mesh, TEAMS);
    await load.stop();
    const [before, during] = world.timeline;
    const gained = TEAMS.filter((namespace) => before?.ownerOf(namespace) !== during?.ownerOf(namespace));
    expect(gained.length).toBeGreaterThan(0);
    for (const namespace of gained) expect(during?.ownerOf(namespace)).toBe("foo-4-normal");
    expect(world.twoWriters()).toEqual([]);
    expectNoWaits(load, world.timeline);
    for (const name of ["foo-0", "foo-1", "foo-2", "foo-3"]) {
      const { proxy } = world.runner.pods.get(name)?.processes ?? {};
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
    const { lastHandover } = (await world.config()).status ?? {};
    const before = await world.config("foo-1-normal");
    await tryKubectl(world.kube.kubeconfig, [
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
    await kubectl(world.kube.kubeconfig, ["patch", "shard", "foo-1-normal", "-n", NAMESPACE, "--type=merge", "-p", patch]);
    await eventually(async () => expect((await world.config("foo-1-normal")).spec).toEqual(before.spec));
    await kubectl(world.kube.kubeconfig, ["delete", "shard", "foo-2-normal", "-n", NAMESPACE, "--wait=false"]);
    await eventually(async () => expect((await world.config("foo-2-normal")).metadata.deletionTimestamp).toBeUndefined());
    expect((await world.config()).status?.lastHandover).toEqual(lastHandover);
  });

  it("refuses each write into another shard's namespaces and names the owner; no selector shows more", async () => {
    const owner = (namespace: string) => world.writersOf(namespace).at(-1) ?? "";
    const foreign = TEAMS.find((namespace) => owner(namespace) === "foo-2-normal") ?? "";
    const own = TEAMS.filter((namespace) => owner(namespace) === "foo-1-normal");
    const mine = own[0] ?? "";
    for (const namespace of [foreign, mine]) {
      await kubectl(world.kube.kubeconfig, ["create", "configmap", "kept", "-n", namespace]);
      // A planted label, with the value that would make it the other shard's.
      const planted = `ctrlmesh.kusionstack.io/namespace=${mine}`;
      await kubectl(world.kube.kubeconfig, ["label", "foo", "one", "-n", namespace, planted]);
    }
    // Only the world.mesh refuses anything.
    const all = ["create", "clusterrolebinding", "all", "--clusterrole=cluster-admin"];
    await kubectl(world.kube.kubeconfig, [...all, `--serviceaccount=${NAMESPACE}:foo-operator`]);
    const { kubeconfig = "" } = world.runner.pods.get("foo-1")?.processes.access ?? {};
    const collection = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps`;
    const stored = JSON.stringify(await world.mesh.foo(foreign, "one"));
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
    const left = async (namespace: string) => kubectl(world.kube.kubeconfig, ["get", "configmap", "-n", namespace, "-o", "name"]);
    expect(await left(mine)).not.toContain("kept");
    expect(await left(foreign)).toContain("kept");
    await world.mesh.client.create(CONFIG_MAPS, { metadata: { namespace: mine, name: "load" } });
  });

  it("loses no placement and lets no two shards write when the manager is killed midway of a scaling", {
    timeout: 120_000,
  }, async () => {
    load = startWriteLoad(world.runner, TEAMS, "load");
    await world.scaleTo(5, world.killManager);
    await world.scaleTo(4);
    await load.stop();
    expectNoWaits(load, world.timeline.slice(-3));
    await reconcileAll(world.mesh, TEAMS);
    expect(world.twoWriters()).toEqual([]);
  });
});
