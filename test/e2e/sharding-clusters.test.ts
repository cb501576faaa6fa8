// Shards divide the namespaces of home and of another cluster: two real control planes, whose audit logs say who wrote where. Also with
// multicluster-runtime, three control planes and a failover: test/nightly/sharding-clusters.test.ts.
import { afterAll, beforeAll, expect, it } from "vitest";
import { annotationKey } from "../../src/api/annotations.ts";
import { SHARDING_CONFIGS } from "../../src/api/resources.ts";
import { SECRETS } from "../../src/kube/client/resources.ts";
import { eventually } from "../support/eventually.ts";
import { startNamespaceWriter } from "../support/namespace-writer.ts";
import { describeWithKube } from "../support/requirements.ts";
import {
  NAMESPACE,
  ROOT,
  type ShardedClusters,
  startHomeWriter,
  startShardedClusters,
} from "../support/sharding/sharded-clusters.ts";

const TEAMS = Array.from({ length: 12 }, (_, at) => `team-${String(at).padStart(2, "0")}`);
const PLACES = [undefined, "eu"].flatMap((cluster) => TEAMS.map((team) => [cluster, team] as const));
const THIRD = "foo-3-normal";
const WAIT_MS = 60_000;

describeWithKube("shards that divide the namespaces of home and of another cluster", () => {
  let world: ShardedClusters;

  /** Waits until the shard of the placement writes in every namespace. A cluster may converge later than home. */
  const untilWritten = async () => {
    const [shardOf, sinceMs] = [await world.placed(), Date.now()];
    await eventually(() => {
      for (const [cluster, team] of PLACES)
        expect([cluster, team, world.turnsIn(cluster, team, sinceMs).turns.at(-1)]).toEqual([
          cluster,
          team,
          shardOf(cluster, team),
        ]);
    }, WAIT_MS);
    return shardOf;
  };
  const countsIn = async () => {
    const { owned = [] } = (await world.clusterStatus("eu"))?.namespaces?.[0] ?? {};
    return Object.fromEntries(owned.map(({ subset, count }) => [subset, count]));
  };

  beforeAll(async () => {
    world = await startShardedClusters({ clusters: ["eu"], namespaces: TEAMS });
    const eu = { name: "eu", kube: world.clusterOf("eu").kube };
    world.inEachPod((pod) => startNamespaceWriter(pod, eu, TEAMS));
    world.inEachPod((pod) => startHomeWriter(pod, TEAMS));
  }, 180_000);
  afterAll(() => world?.stop());

  it("each have one writer, and about the same number of both together", { timeout: 120_000 }, async () => {
    const [shardOf, sinceMs] = [await untilWritten(), Date.now()];
    await untilWritten();
    for (const [cluster, team] of PLACES)
      expect(world.turnsIn(cluster, team, sinceMs)).toEqual({ turns: [shardOf(cluster, team)], overlaps: [] });
    await eventually(async () => {
      const counts = await countsIn();
      expect(Object.keys(counts).sort()).toEqual(["foo-1-normal", "foo-2-normal"]);
      const { status } = await world.root();
      const owned = Object.values(counts).reduce((sum, count) => sum + count, 0);
      // The namespaces of Kubernetes count at home and in the cluster.
      expect(owned).toBeGreaterThan(TEAMS.length);
      expect(status?.namespaces?.total).toBeGreaterThan(owned + TEAMS.length);
      expect(status?.balance?.largest).toBeLessThanOrEqual((status?.balance?.smallest ?? 0) + 3);
      expect(await world.rootCondition("Balanced")).toMatchObject({ status: "True", reason: "Even" });
    }, WAIT_MS);
    expect(await world.clusterCondition("eu", "Ready")).toMatchObject({ status: "True" });
  });

  it("wait for a confirmation of maxMovingPercent, and then move to a third shard without two writers, and no others move", {
    timeout: 240_000,
  }, async () => {
    const [before, sinceMs] = [await world.placed(), Date.now()];
    const changeRoot = (body: object) => world.mesh.client.patch(SHARDING_CONFIGS, ROOT, { type: "merge", body });
    await changeRoot({ spec: { root: { maxMovingPercent: 5 } } });
    await world.scale(3);
    await eventually(
      async () => expect(await world.rootCondition("Converged")).toMatchObject({ reason: "ConfirmationRequired" }),
      WAIT_MS,
    );
    const { message = "" } = (await world.rootCondition("Converged")) ?? {};
    const placement = await world.placed();
    const moving = PLACES.filter(([cluster, team]) => placement(cluster, team) !== before(cluster, team)).length;
    // And those of Kubernetes.
    expect(Number(/^(\d+) of /.exec(message)?.[1])).toBeGreaterThanOrEqual(moving);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    for (const [cluster, team] of PLACES)
      expect([cluster, team, world.turnsIn(cluster, team, sinceMs).turns]).toEqual([cluster, team, [before(cluster, team)]]);
    const { generation } = (await world.root()).metadata;
    await changeRoot({ metadata: { annotations: { [annotationKey("confirm-moves")]: String(generation) } } });
    await world.untilShards(3);
    const after = await untilWritten();
    const gained = PLACES.filter(([cluster, team]) => after(cluster, team) === THIRD);
    expect(gained.length).toBeGreaterThanOrEqual(6);
    for (const where of [undefined, "eu"]) expect(gained.some(([cluster]) => cluster === where)).toBe(true);
    for (const [cluster, team] of PLACES) {
      const turns = [...new Set([before(cluster, team), after(cluster, team)])];
      expect([cluster, team, world.turnsIn(cluster, team, sinceMs)]).toEqual([cluster, team, { turns, overlaps: [] }]);
      if (turns.length > 1) expect(turns[1]).toBe(THIRD);
    }
    await eventually(async () => expect((await countsIn())[THIRD]).toBeGreaterThan(0), WAIT_MS);
  });

  it("leave a removed shard, also in a cluster whose namespaces the manager cannot read", { timeout: 180_000 }, async () => {
    const [before, sinceMs] = [await world.placed(), Date.now()];
    await world.mesh.client.delete(SECRETS, { namespace: NAMESPACE, name: "eu" });
    await world.clusterOf("eu").readSecretNow(world.mesh);
    await eventually(
      async () => expect(await world.clusterCondition("eu", "NamespacesWatched")).toMatchObject({ status: "False" }),
      WAIT_MS,
    );
    await world.scale(2);
    await world.untilShards(2);
    const after = await untilWritten();
    for (const [cluster, team] of PLACES) {
      const turns = [...new Set([before(cluster, team), after(cluster, team)])];
      expect([cluster, team, world.turnsIn(cluster, team, sinceMs)]).toEqual([cluster, team, { turns, overlaps: [] }]);
      if (turns.length > 1) expect(turns[0]).toBe(THIRD);
    }
  });
});
