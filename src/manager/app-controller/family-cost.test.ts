// How many status patches a family costs. The bounds do not grow with the number of shards.
import { describe, expect, it } from "vitest";
import { createFamilyWorld, type FamilyWorld } from "../../../test/support/family-world.ts";
import { conditionOf } from "../status/facts.ts";

const SHARDS = 16;
const NAMESPACES = Array.from({ length: 8 * SHARDS }, (_, at) => `team-${at}`);

async function begun(shards = SHARDS): Promise<FamilyWorld> {
  const world = createFamilyWorld(shards, NAMESPACES);
  await world.begin();
  return world;
}

/** The proxies acknowledge one after the other, this long apart; returns what the root said meanwhile. */
async function acknowledgeSlowly(world: FamilyWorld, apartMs: number): Promise<{ converged?: string; routeVersion?: number }[]> {
  const said = [];
  await world.turn();
  while (world.unanswered > 0) {
    world.answer(1);
    await world.turn();
    await world.pass(apartMs);
    const status = world.status();
    const converged = conditionOf(status, "Converged")?.status;
    said.push({ ...(converged && { converged }), ...(status?.routeVersion && { routeVersion: status.routeVersion }) });
  }
  return said;
}

/** The number of patches of the root and of its children until the family is quiet. */
async function patchesOf(world: FamilyWorld): Promise<{ root: number; children: number }> {
  await world.pass(3_600_000);
  const names = world.takePatches();
  return { root: names.filter((name) => name === "shop").length, children: names.filter((name) => name !== "shop").length };
}

const namespacesOf = (world: FamilyWorld, shards = SHARDS) =>
  Array.from({ length: shards }, (_, at) => world.status(`shop-${at + 1}-normal`)?.shardNamespaces ?? Number.NaN);

describe("one birth of a namespace", () => {
  it.each([
    [64, 70],
    [SHARDS, 0],
    [SHARDS, 250],
  ])("costs one patch of the root and one of the child, with %i shards that acknowledge %i ms apart", async (shards, apartMs) => {
    const world = await begun(shards);
    const before = world.status()?.routeVersion ?? 0;
    world.bear("newborn");
    const said = await acknowledgeSlowly(world, apartMs);
    expect(said.filter(({ converged, routeVersion }) => converged === "True" && routeVersion !== before)).toHaveLength(1);
    expect(await patchesOf(world)).toEqual({ root: 1, children: 1 });
    expect(namespacesOf(world, shards).reduce((sum, count) => sum + count, 0)).toBe(NAMESPACES.length + 1);
    expect(world.status()).toMatchObject({ shardNamespaces: NAMESPACES.length + 1, proxies: { synced: shards } });
  });

  it("costs two patches of the root if they take half a minute, and says meanwhile that proxies are behind", async () => {
    const world = await begun();
    const before = world.status()?.routeVersion ?? 0;
    world.bear("newborn");
    const said = await acknowledgeSlowly(world, 2_000);
    const behind = said.filter(({ routeVersion }) => routeVersion !== before).slice(0, -1);
    expect(behind.length).toBeGreaterThan(10);
    expect(behind.every(({ converged }) => converged === "False")).toBe(true);
    expect(said.at(-1)?.converged).toBe("True");
    expect(await patchesOf(world)).toEqual({ root: 2, children: 1 });
  });

  it("costs less among others: thirty of them in three seconds cost no more than 30 patches of children", async () => {
    const world = await begun();
    for (let at = 0; at < 30; at++) {
      world.bear(`newborn-${at}`);
      await world.turn();
      world.answer();
      await world.turn();
      await world.pass(100);
    }
    const { root, children } = await patchesOf(world);
    expect(root).toBeLessThanOrEqual(30);
    expect(children).toBeLessThanOrEqual(30);
    expect(namespacesOf(world).reduce((sum, count) => sum + count, 0)).toBe(NAMESPACES.length + 30);
  });
});

describe("a pod", () => {
  it("that becomes unready costs the root and its own child one patch each, and so does its return", async () => {
    const world = await begun();
    const others = namespacesOf(world);
    world.putPod(7, false);
    await world.turn();
    expect(await patchesOf(world)).toEqual({ root: 1, children: 1 });
    expect(world.status("shop-7-normal")).toMatchObject({
      shardPods: "0/1",
      conditions: [{ status: "False", reason: "SubsetWithoutPods" }],
    });
    expect(world.status("shop-8-normal")?.conditions).toMatchObject([{ status: "True", reason: "Serving" }]);
    expect(conditionOf(world.status(), "Ready")).toMatchObject({ status: "False", reason: "SubsetWithoutPods" });
    world.putPod(7);
    await world.turn();
    expect(await patchesOf(world)).toEqual({ root: 1, children: 1 });
    expect(world.status("shop-7-normal")).toMatchObject({
      shardPods: "1/1",
      conditions: [{ status: "True", reason: "Serving" }],
    });
    expect(namespacesOf(world)).toEqual(others);
  });

  it("that flaps twice a second costs its child one patch in 5 seconds, and the last state is shown", async () => {
    const world = await begun();
    for (let at = 1; at <= 40; at++) {
      world.putPod(7, at % 2 === 0);
      await world.turn();
      await world.pass(500);
    }
    const { children } = await patchesOf(world);
    expect(children).toBeLessThanOrEqual(5);
    expect(world.status("shop-7-normal")?.shardPods).toBe("1/1");
  });
});

it("a scale-up costs each child that gains or loses two patches at most, and the others none", async () => {
  const world = createFamilyWorld(7, NAMESPACES);
  await world.begin();
  const before = namespacesOf(world, 8);
  world.putPod(8);
  await world.settle();
  await world.place(8);
  await world.settle();
  await world.pass(3_600_000);
  const patches = world.takePatches().filter((name) => name !== "shop");
  const changed = namespacesOf(world, 8).flatMap((count, at) => (count === before[at] ? [] : [`shop-${at + 1}-normal`]));
  expect(changed.length).toBeGreaterThan(4);
  expect(patches.filter((name) => !changed.includes(name))).toEqual([]);
  expect(patches.length).toBeLessThanOrEqual(2 * changed.length);
});

it("a StatefulSet without pods of normal shards leaves them their namespaces, and both the root and the children say so", async () => {
  const world = createFamilyWorld(3, NAMESPACES);
  await world.begin();
  const before = namespacesOf(world, 3);
  world.removePods();
  await world.turn();
  await world.pass(60_000);
  expect(namespacesOf(world, 3)).toEqual(before);
  expect(world.status("shop-1-normal")).toMatchObject({
    shardPods: "0/0",
    conditions: [{ status: "False", reason: "SubsetWithoutPods" }],
  });
  expect(world.status()?.subsets?.map(({ reason }) => reason)).toEqual([undefined, ...Array(3).fill("SubsetWithoutPods")]);
});
