// A pod without a proxy that comes beside subsets which hold their namespaces already, as when a webhook was bypassed: nobody can keep
// it from anything, so mesh.test.ts leaves it out. What the mesh does all the same: it grants nothing more beside it, and says so.
import { expect, it } from "vitest";
import { createMeshWorld } from "./mesh-model.ts";

it("nothing new is granted beside a pod without a proxy, nobody loses anything by it, and the status names it", async () => {
  const world = createMeshWorld();
  const pods = ["d0", "c0"];
  const round = async () => {
    await world.reconcile();
    for (const { name } of [...world.proxies.values()]) {
      await world.connect(name);
      await world.exchange(name);
    }
  };
  const owners = (namespace: string) => [...world.holders(namespace).keys()];
  const condition = (wanted: string) => world.status()?.conditions?.find(({ type }) => type === wanted);
  world.setApp({ owners: { a: "canary" } });
  for (const name of pods) world.setPod(name, { subset: name === "c0" ? "canary" : "" });
  await world.settle();
  expect(condition("Converged")).toMatchObject({ status: "True", reason: "InSync" });

  world.setPod("bare", { injected: null });
  world.setPodStatus("bare", { phase: "Running", conditions: [{ type: "Ready", status: "True" }] });
  for (let times = 0; times < 3; times++) await round();
  expect([owners("a"), owners("b")]).toEqual([["canary"], [""]]);
  const named = { status: "False", message: expect.stringContaining("pod bare") };
  expect(condition("Converged")).toMatchObject({ ...named, reason: "PodsWithoutProxy" });
  expect(condition("TrafficIntercepted")).toMatchObject({ ...named, reason: "PodsWithoutProxy" });
  expect(condition("Ready")).toMatchObject({ ...named, reason: "OwnershipConflict" });
  expect(world.events).toEqual(expect.arrayContaining(["OwnershipConflict", "InjectionMissed"]));

  world.setApp({ owners: { a: "canary", b: "canary" } });
  for (let times = 0; times < 4; times++) await round();
  expect([owners("a"), owners("b")]).toEqual([["canary"], []]); // the default subset has stopped, and the other one waits

  world.deletePod("c0"); // with its last pod the subset holds nothing, and gets nothing back
  world.setPod("c1", { subset: "canary" });
  for (let times = 0; times < 4; times++) await round();
  expect([owners("a"), owners("b")]).toEqual([[], []]);

  world.deletePod("bare");
  await world.settle();
  expect([owners("a"), owners("b"), owners("c")]).toEqual([["canary"], ["canary"], [""]]);
  expect(condition("Ready")).toMatchObject({ status: "True", reason: "InSync" });
});
