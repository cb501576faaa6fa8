// The end of a family in the middle of a scaling, on the real control plane (as test/e2e/sharding.test.ts): the root is disabled, or deleted.
import { afterAll, beforeAll, expect, it } from "vitest";
import { SHARDING_CONFIGS } from "../../src/api/resources.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { eventually } from "../support/eventually.ts";
import { kubectl } from "../support/kubectl.ts";
import { describeWithKube } from "../support/requirements.ts";
import { reconcileAll } from "../support/sharding/reconcile-all.ts";
import {
  NAMESPACE,
  ROOT,
  root,
  type ShardedWorld,
  shardOfPod,
  startShardedWorld,
  TEAMS,
} from "../support/sharding/sharded-world.ts";

describeWithKube("a StatefulSet that shards itself, and ends", () => {
  let world: ShardedWorld;

  /** Who led the whole family since then, from the audit log: a pod that writes the lock holds it. */
  const leadersSince = (sinceMs: number) =>
    world.mesh
      .podWrites()
      .filter(({ resource, name, code, answeredMs }) => {
        return resource === "leases" && name === "foo-operator" && code < 300 && answeredMs > sinceMs;
      })
      .map(({ pod, receivedMs }, index) => ({ sinceMs: index === 0 ? sinceMs : receivedMs, ownerOf: () => shardOfPod(pod) }));
  /** Ends the family while a scaling moves namespaces: then one pod leads, and the shards write no more. */
  const endMidway = async (replicas: number, end: () => Promise<unknown>, left: readonly string[]) => {
    const sinceMs = Date.now();
    let endedMs = sinceMs;
    await world.whileMoving(
      () => world.scale(replicas),
      async () => {
        world.timeline.push({ sinceMs, ownerOf: await world.ownersNow() });
        endedMs = Date.now();
        await end();
      },
    );
    await Promise.all([reconcileAll(world.mesh, TEAMS), untilGone(left)]);
    await reconcileAll(world.mesh, TEAMS);
    world.timeline.push(...leadersSince(endedMs));
    expect(world.twoWriters()).toEqual([]);
  };
  /** The root has no finalizer then, and children are gone. */
  const untilGone = (left: readonly string[]) =>
    eventually(async () => {
      const { items } = await world.mesh.client.list(SHARDING_CONFIGS, { namespace: NAMESPACE });
      expect(items.map(({ metadata }) => [metadata.name, metadata.finalizers ?? []])).toEqual(left.map((name) => [name, []]));
    }, 60_000);

  beforeAll(async () => {
    world = await startShardedWorld();
  }, 180_000);
  afterAll(() => world?.stop());

  it("has one writer in each namespace while the root is disabled midway of a scale-up, and divides again afterwards", {
    timeout: 120_000,
  }, async () => {
    await endMidway(5, () => world.mesh.apply(root({ disable: true })), [ROOT.name]);
    const view = world.runner.pods.get("foo-2")?.processes.access?.kubeconfig ?? "";
    const shown = await kubectl(view, ["get", "foos", "-A", "-o", "name"]);
    expect(shown.split("\n").filter((name) => name !== "")).toHaveLength(TEAMS.length);

    const sinceMs = Date.now();
    await world.mesh.apply(root({ disable: false }));
    await world.untilShards(5);
    world.timeline.push({ sinceMs, ownerOf: await world.ownersNow() });
    await reconcileAll(world.mesh, TEAMS);
    expect(world.twoWriters()).toEqual([]);
  });

  it("leaves nothing when the root is deleted midway of a scale-down and the manager is killed then, and no part of the mesh has ever written a label", {
    timeout: 120_000,
  }, async () => {
    const deleteRoot = async () => {
      await kubectl(world.kube.kubeconfig, ["delete", "shard", ROOT.name, "-n", NAMESPACE, "--wait=false"]);
      await world.killManager();
    };
    await endMidway(4, deleteRoot, []);
    const get = async (...args: string[]): Promise<readonly KubeObject[]> =>
      JSON.parse(await kubectl(world.kube.kubeconfig, ["get", ...args, "-o", "json"])).items;
    for (const { metadata } of await get("statefulsets,pods", "-n", NAMESPACE)) {
      expect([...Object.keys(metadata.annotations ?? {}), ...(metadata.finalizers ?? [])].join()).not.toContain("ctrlmesh");
    }
    for (const { metadata } of await get("namespaces")) {
      expect(Object.keys(metadata.labels ?? {})).toEqual(["kubernetes.io/metadata.name"]);
    }
    await eventually(async () => expect(await get("ownershipslices", "-n", NAMESPACE)).toEqual([]), 30_000);
    const writes = world.kube
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
