// An unmodified operator on multicluster-runtime in the pods of a StatefulSet whose shards divide the namespaces of two other clusters:
// three real control planes, scaling from two pods to three and back, and kill -9 of the leading manager meanwhile. The audit log of each
// cluster says who has written where.
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { allowSecrets, clusterServedBy, startMulticlusterOperator, WRITE_LABEL } from "../support/multicluster-operator.ts";
import { describeWithKube } from "../support/requirements.ts";
import { type ShardedClusters, shardOfPod, startShardedClusters } from "../support/sharding/sharded-clusters.ts";
import type { Supervised } from "../support/supervised.ts";

const CLUSTERS = ["eu", "us"] as const;
const TEAMS = Array.from({ length: 8 }, (_, at) => `team-${at}`);
const PLACES = CLUSTERS.flatMap((cluster) => TEAMS.map((team) => [cluster, team] as const));
const THIRD = "foo-3-normal";
/** A shard makes progress in a namespace when it has written there so often. */
const WRITES = 10;
const PROGRESS_MS = 100_000;
const TEST_MS = 400_000;

describeWithKube("an operator on multicluster-runtime in shards that divide the namespaces of other clusters", () => {
  let world: ShardedClusters;
  const operators = new Map<string, Supervised>();

  const outputs = () =>
    [...operators]
      .map(([name, { child, restarts }]) => `${name}, ${restarts} restarts:\n${child.output().slice(-2_000)}`)
      .join("\n");
  /** Every namespace has exactly the shard of the placement as its writer, and often enough, from now on. */
  const progress = async () => {
    const [shardOf, sinceMs] = [await world.placed(), Date.now()];
    await eventually(() => {
      for (const [cluster, team] of PLACES) {
        const own = world.writesIn(cluster, team, sinceMs).filter(({ pod }) => shardOfPod(pod) === shardOf(cluster, team));
        expect(own.length, `${cluster}/${team} of ${shardOf(cluster, team)}\n${outputs()}`).toBeGreaterThan(WRITES);
      }
    }, PROGRESS_MS);
    return shardOf;
  };
  type Placed = Awaited<ReturnType<typeof progress>>;
  /** One writer after the other in each namespace, by the placements that were in force. */
  const expectTurns = (sinceMs: number, ...placements: readonly Placed[]) => {
    for (const [cluster, team] of PLACES) {
      const turns = placements.map((shardOf) => shardOf(cluster, team)).filter((shard, at, all) => shard !== all[at - 1]);
      expect([cluster, team, world.turnsIn(cluster, team, sinceMs)]).toEqual([cluster, team, { turns, overlaps: [] }]);
    }
  };
  const gainedBy = (before: Placed, after: Placed) =>
    PLACES.filter(([cluster, team]) => before(cluster, team) !== after(cluster, team)).map(([cluster, team]) =>
      after(cluster, team),
    );

  beforeAll(async () => {
    world = await startShardedClusters({ clusters: CLUSTERS, namespaces: TEAMS, labels: WRITE_LABEL, managers: 2 });
    await allowSecrets(world.mesh);
    const kubes = Object.fromEntries(CLUSTERS.map((name) => [name, world.clusterOf(name).kube]));
    world.inEachPod(async (pod) => {
      const operator = await startMulticlusterOperator(world.mesh, pod, kubes, clusterServedBy);
      operators.set(pod.name, operator);
      return { stop: () => operator.stop(2_000) };
    });
  }, 240_000);
  afterAll(() => world?.stop(), 60_000);

  it(
    "has one writer in each namespace of each cluster, and both shards have about as many",
    async () => {
      const sinceMs = Date.now();
      const shardOf = await progress();
      expectTurns(sinceMs, shardOf);
      const own = PLACES.filter(([cluster, team]) => shardOf(cluster, team) === "foo-1-normal").length;
      expect(own).toBeGreaterThanOrEqual(4);
      expect(own).toBeLessThanOrEqual(12);
    },
    TEST_MS,
  );

  it(
    "gives a third pod its part while the leading manager is killed, and takes it back, with one writer all the time",
    async () => {
      const [two, sinceMs] = [await world.placed(), Date.now()];
      await world.scale(3);
      await eventually(() => expect(world.runner.pods.has("foo-2")).toBe(true), 30_000);
      await world.mesh.managers[0]?.crash();
      await world.untilShards(3);
      const three = await progress();
      expect(new Set(gainedBy(two, three))).toEqual(new Set([THIRD]));
      expect(gainedBy(two, three).length).toBeGreaterThanOrEqual(3);
      expectTurns(sinceMs, two, three);
      await world.scale(2);
      await eventually(() => expect(world.runner.pods.get("foo-2")?.isEnding ?? true).toBe(true), 30_000);
      await world.mesh.managers[1]?.crash();
      await world.untilShards(2);
      const after = await progress();
      expectTurns(sinceMs, two, three, after);
    },
    TEST_MS,
  );

  it(
    "keeps all owners while a cluster is away and a manager begins that does not know its namespaces, and when it is back",
    async () => {
      const [before, sinceMs] = [await world.placed(), Date.now()];
      await world.clusterOf("eu").kube.crash();
      await Promise.all(world.mesh.managers.map((manager) => manager.crash()));
      await eventually(
        async () => expect(await world.clusterCondition("eu", "NamespacesWatched")).toMatchObject({ status: "False" }),
        60_000,
      );
      const during = Date.now();
      // The operator has one worker, and client-go repeats a request that was answered with a 503 for ten seconds.
      await eventually(() => {
        for (const team of TEAMS) expect(world.writesIn("us", team, during).length, team).toBeGreaterThan(0);
      }, PROGRESS_MS);
      expect(await world.rootCondition("Balanced")).toMatchObject({ status: "True" });
      await world.clusterOf("eu").kube.restart();
      const after = await progress();
      expect(gainedBy(before, after)).toEqual([]);
      expectTurns(sinceMs, before);
    },
    TEST_MS,
  );
});
