// What once went wrong in the mesh as a whole, by name. The world is that of mesh.test.ts; each scenario is the shortest order
// of events that showed the mistake.
import { describe, expect, it } from "vitest";
import { createMeshWorld, type MeshWorld } from "./mesh-model.ts";
import { podStatus } from "./mesh-objects.ts";

const A_TO_CANARY = { owners: { a: "canary" } };
const A_AND_B_TO_CANARY = { owners: { a: "canary", b: "canary" } };

/** A quiet world of app "shop" with these pods: those that begin with c are canaries, the others default. */
async function quietWorld(...pods: string[]): Promise<MeshWorld> {
  const world = createMeshWorld();
  world.setApp(A_TO_CANARY);
  for (const name of pods) world.setPod(name, { subset: subsetOf(name) });
  await world.settle();
  expect(holders(world)).toEqual(
    holdersBySubset(
      pods.filter((name) => subsetOf(name) === ""),
      pods.filter((name) => subsetOf(name) === "canary"),
    ),
  );
  return world;
}

const subsetOf = (name: string) => (name.startsWith("c") ? "canary" : "");
const condition = (world: MeshWorld, wanted: string, app?: string) =>
  world.status(app)?.conditions?.find(({ type }) => type === wanted);
const ready = (world: MeshWorld, app?: string) => condition(world, "Ready", app);
/** By namespace, subset and pods. */
const holders = (world: MeshWorld) =>
  Object.fromEntries(["a", "b", "c"].map((name) => [name, Object.fromEntries(world.holders(name))]));
const holdersBySubset = (rest: readonly string[], canary: readonly string[]) => ({
  a: { canary },
  b: { "": rest },
  c: { "": rest },
});

/** What the manager and each pod then say, once. */
async function round(world: MeshWorld, ...pods: string[]): Promise<void> {
  await world.reconcile();
  for (const name of pods) await world.exchange(name);
  world.expectOneOwner(`a round with ${pods}`);
}

/** The proxy is welcomed and promises; what it is sent then has not arrived. */
async function greet(world: MeshWorld, name: string): Promise<void> {
  const proxy = world.proxy(name);
  proxy.answer();
  await proxy.deliver();
  proxy.answer();
}

describe("one owner", () => {
  it("two owners after a manager restart", async () => {
    const world = await quietWorld("d0", "d1", "c0");
    world.setApp(A_AND_B_TO_CANARY); // while nobody leads
    world.restartManager();
    for (const name of ["d0", "c0"]) await world.connect(name); // d1 is cut off, and serves what it has
    for (const name of ["d0", "c0"]) await world.exchange(name);
    for (let times = 0; times < 4; times++) await round(world, "d0", "c0");
    expect([...world.holders("b").keys()]).toEqual([""]);
    await world.settle();
    expect(holders(world)).toEqual({ a: { canary: ["c0"] }, b: { canary: ["c0"] }, c: { "": ["d0", "d1"] } });
  });

  it("a resource that is public no more, while a subset that shared it is cut off; what was not public goes on", async () => {
    const world = createMeshWorld();
    world.setApp({ ...A_TO_CANARY, publics: ["configmaps"] });
    for (const name of ["d0", "c0"]) world.setPod(name, { subset: subsetOf(name) });
    await world.settle();
    expect(Object.fromEntries(world.holders("b"))).toEqual({ "": ["d0"], canary: ["c0"] });
    world.setApp(A_TO_CANARY);
    for (let times = 0; times < 4; times++) await round(world, "d0");
    expect([...world.holders("b").keys()]).toEqual(["canary"]);
    expect([...world.holders("b", "pods").keys()]).toEqual([""]);
    expect(condition(world, "Converged")).toMatchObject({
      reason: "Moving",
      message: "resources move between subsets as a whole: they wait for pod c0",
    });
    await world.settle();
    expect(holders(world)).toEqual(holdersBySubset(["d0"], ["c0"]));
  });

  it("a registration while a write is in flight in what the proxy has lost", async () => {
    const world = await quietWorld("d0", "c0");
    const d0 = world.proxy("d0");
    d0.beginWrite("b", "configmaps");
    world.setApp(A_AND_B_TO_CANARY);
    await round(world, "d0", "c0");
    d0.cut();
    await world.connect("d0");
    for (let times = 0; times < 3; times++) await round(world, "d0", "c0");
    expect([...world.holders("b").keys()]).toEqual([""]);
    await d0.endWrites();
    await world.settle();
    expect(world.holders("b")).toEqual(new Map([["canary", ["c0"]]]));
  });

  it("a registration after a gain that could not be acknowledged, since a write is in flight elsewhere", async () => {
    const world = await quietWorld("d0", "c0");
    const d0 = world.proxy("d0");
    d0.beginWrite("b", "configmaps");
    d0.cut();
    world.setApp({ owners: { b: "canary" } });
    await round(world, "c0"); // which gives a up
    await world.connect("d0");
    await round(world, "d0");
    await round(world, "d0"); // which gets a at once, and keeps b while it writes there
    expect(world.holders("a")).toEqual(new Map([["", ["d0"]]]));
    d0.cut();
    await world.connect("d0");
    await greet(world, "d0");
    world.setApp(A_TO_CANARY);
    for (let times = 0; times < 3; times++) await round(world, "c0");
    expect(world.holders("a")).toEqual(new Map([["", ["d0"]]]));
    await world.settle();
    expect(holders(world)).toEqual(holdersBySubset(["d0"], ["c0"]));
  });

  it("a proxy that is killed with a gain in force which it has not stored, and a write there", async () => {
    const world = await quietWorld("d0", "c0");
    const c0 = world.proxy("c0");
    world.setApp(A_AND_B_TO_CANARY);
    await round(world, "d0", "c0"); // which has b taken from d0
    await c0.setDisk("hangs");
    for (let times = 0; times < 2; times++) await round(world, "d0", "c0");
    expect(world.holders("b")).toEqual(new Map([["canary", ["c0"]]]));
    c0.beginWrite("b", "configmaps");
    await c0.restart("before");
    world.setApp(A_TO_CANARY); // of b the next process knows nothing
    await world.connect("c0");
    for (let times = 0; times < 4; times++) await round(world, "d0", "c0");
    expect(world.holders("b")).toEqual(new Map([["canary", ["c0"]]]));
    expect(world.holders("a")).toEqual(new Map([["canary", ["c0"]]])); // nobody loses what he has
    expect(world.holders("c")).toEqual(new Map([["", ["d0"]]]));
    await world.settle();
    expect(holders(world)).toEqual(holdersBySubset(["d0"], ["c0"]));
  });

  it("the app's own label taken off a pod", async () => {
    const world = await quietWorld("d0", "c0");
    world.setPod("c0", { subset: "canary", selected: false });
    world.setApp({ owners: { b: "canary" } });
    await world.settle();
    expect(holders(world)).toEqual({ a: { "": ["d0"] }, b: { canary: ["c0"] }, c: { "": ["d0"] } });
  });

  it("the injected label taken off a pod", async () => {
    const world = await quietWorld("d0", "c0");
    world.setPod("c0", { subset: "canary", injected: null });
    world.setApp({ owners: { b: "canary" } });
    await world.settle();
    expect(world.holders("a")).toEqual(new Map([["canary", ["c0"]]])); // it was not told otherwise
    expect(condition(world, "Converged")?.status).toBe("False");
    world.setPod("c0", { subset: "canary" });
    await world.settle();
    expect(holders(world)).toEqual({ a: { "": ["d0"] }, b: { canary: ["c0"] }, c: { "": ["d0"] } });
  });

  it("the injected label taken off a pod before a new manager leads", async () => {
    const world = await quietWorld("d0", "c0");
    world.restartManager();
    world.setPod("c0", { subset: "canary", injected: null }); // it is refused now, and cannot say that it is a canary
    world.setApp({ ...A_TO_CANARY, onlyConfigMaps: true });
    await world.connect("d0");
    await world.exchange("d0");
    for (let times = 0; times < 3; times++) await round(world, "d0");
    expect([...world.holders("a", "pods").keys()]).toEqual(["canary"]);
  });

  it("a VirtualApp deleted and one of another name takes its pods", async () => {
    const world = await quietWorld("d0", "c0");
    world.deleteApp();
    await world.reconcile();
    world.setApp({ owners: { b: "canary" } }, "store");
    world.deletePod("d0");
    world.setPod("d0", { injected: "store" });
    await world.settle(); // c0 enforces the rules of the old app still
    expect(world.holders("a")).toEqual(new Map([["canary", ["c0"]]]));
    expect(ready(world, "store")?.status).toBe("False");
    world.deletePod("c0");
    world.setPod("c0", { injected: "store", subset: "canary" });
    await world.settle();
    expect(holders(world)).toEqual({ a: { "": ["d0"] }, b: { canary: ["c0"] }, c: { "": ["d0"] } });
    expect(ready(world, "store")?.status).toBe("True");
  });

  it("a pod of which its kubelet has not written yet that it was served by the manager before", async () => {
    const world = await quietWorld("d0", "c0");
    world.setApp({ owners: {} });
    world.setPodStatus("c0", podStatus(false, 0));
    world.restartManager();
    await world.connect("d0");
    await world.exchange("d0");
    for (let times = 0; times < 3; times++) await round(world, "d0");
    await world.settle();
    const both = { "": ["d0", "c0"] }; // there is no canary any more
    expect(holders(world)).toEqual({ a: both, b: both, c: both });
  });

  it("a proxy that crashed once before its pod was ready", async () => {
    const world = await quietWorld("d0", "c0");
    world.setApp(A_AND_B_TO_CANARY);
    world.restartManager();
    const proxy = { name: "ctrlmesh-proxy", ready: false, started: false, restartCount: 0, lastState: { terminated: {} } };
    world.setPodStatus("d0", { phase: "Running", initContainerStatuses: [proxy] });
    await world.connect("c0");
    await world.exchange("c0");
    for (let times = 0; times < 3; times++) await round(world, "c0");
    await world.proxy("d0").restart("saved"); // with what was on its disk
    world.expectOneOwner("d0's restart");
    await world.settle();
    expect(holders(world)).toEqual({ a: { canary: ["c0"] }, b: { canary: ["c0"] }, c: { "": ["d0"] } });
  });

  it("a pod whose proxy crashes from the beginning on: nobody has told it anything, so all goes on without it", async () => {
    const world = await quietWorld("d0", "c0");
    world.setPod("x", { injected: "shop" });
    world.setPodStatus("x", podStatus(false, 3, false));
    world.setApp(A_AND_B_TO_CANARY);
    for (let times = 0; times < 6; times++) await round(world, "d0", "c0");
    expect(holders(world)).toEqual({ a: { canary: ["c0"] }, b: { canary: ["c0"] }, c: { "": ["d0"] } });
  });

  it("a proxy that crashed over and over before its operator was started, and knows what the manager before told it", async () => {
    const world = await quietWorld("d0", "c0");
    world.setPodStatus("d0", podStatus(false, 2, false)); // the last word of its kubelet, for whatever reason
    world.restartManager();
    await world.connect("c0");
    await world.exchange("c0");
    world.pass(60_000);
    world.setApp(A_AND_B_TO_CANARY);
    for (let times = 0; times < 3; times++) await round(world, "c0");
    world.expectOneOwner("d0's silence");
    expect(holders(world)).toEqual(holdersBySubset(["d0"], ["c0"]));
  });

  it("namespaces that are born after an edit which the watch of apps has not brought yet", async () => {
    const world = await quietWorld("d0", "c0");
    world.setApp(A_AND_B_TO_CANARY);
    await world.settle();
    world.leader.isAppWatchLate = true;
    world.setApp(A_TO_CANARY);
    world.cluster.setNamespace("d", "b");
    world.cluster.setNamespace("c", "b");
    for (let times = 0; times < 6; times++) await round(world, "d0", "c0");
    // The edit is known by now, whatever the watch does.
    expect(holders(world)).toEqual(holdersBySubset(["d0"], ["c0"]));
    expect([...world.holders("d")]).toEqual([["", ["d0"]]]);
  });

  it("a pod of which the watch says only while the spec is read again that it was served", async () => {
    const world = await quietWorld("d0", "c0");
    const { cluster } = world;
    cluster.setPodStatus("d0", podStatus(false, 0)); // its kubelet is late
    world.restartManager(); // d0 is cut off, and serves what it has
    await world.connect("c0");
    await world.exchange("c0");
    await round(world, "c0");
    world.pass(29_990);
    world.setApp(A_AND_B_TO_CANARY);
    const { before } = cluster.client;
    cluster.client.before = ({ verb }) => {
      if (verb !== "get") return;
      cluster.client.before = before;
      cluster.setPodStatus("d0", podStatus(true, 0));
      world.pass(20); // statuses are believed from now on
    };
    for (let times = 0; times < 4; times++) await round(world, "c0");
    expect(cluster.client.before).toBe(before);
    expect(holders(world).b).toEqual({ "": ["d0"] });
  });
});

describe("two managers at once", () => {
  it("one that was asleep goes on leading, and a proxy that follows a newer one comes to it", async () => {
    const world = await quietWorld("d0", "c0");
    world.restartManager("deluded");
    await world.settle(3);
    world.setApp(A_AND_B_TO_CANARY);
    await world.settle();
    world.setApp(A_TO_CANARY); // by what the older one knows, c0 has never had b
    world.proxy("d0").hangUp();
    await world.connect("d0", true);
    for (let times = 0; times < 4; times++) {
      await world.reconcile(undefined, world.older);
      await world.exchange("d0");
      world.expectOneOwner("a round of the older manager");
    }
    expect([...world.holders("b").keys()]).toEqual(["canary"]);
    await world.settle();
    expect(holders(world)).toEqual(holdersBySubset(["d0"], ["c0"]));
  });

  it("a registration that arrives late, over an older stream", async () => {
    const world = await quietWorld("d0", "c0");
    const d0 = world.proxy("d0");
    d0.cut();
    await world.connect("d0");
    d0.answer();
    await d0.deliver(); // it promises, and then
    d0.hangUp();
    world.setApp({ owners: { b: "canary" } }); // which gives a to the default subset
    await world.connect("d0");
    d0.answer(true);
    await d0.deliver();
    d0.answer(true); // so it is served
    for (let times = 0; times < 2; times++) {
      await round(world, "c0");
      await d0.deliver();
      d0.answer(true);
    }
    expect(world.holders("a")).toEqual(new Map([["", ["d0"]]]));
    d0.answer(); // what it had before, as it seems
    world.setApp(A_TO_CANARY);
    for (let times = 0; times < 3; times++) await round(world, "c0");
    await world.settle();
    expect(holders(world)).toEqual(holdersBySubset(["d0"], ["c0"]));
  });
});

describe("convergence", () => {
  it("a pod whose label moves it to another subset", async () => {
    const world = await quietWorld("d0", "d1", "c0");
    world.setPod("c0"); // which has the newest version of all
    world.setPod("c1", { subset: "canary" });
    await world.settle();
    expect(holders(world)).toEqual(holdersBySubset(["d0", "d1", "c0"], ["c1"]));
    expect(world.proxy("c0").nacks).toEqual([]);
    expect(ready(world)).toMatchObject({ status: "True", reason: "InSync" });
  });

  it("a rule edited and put back while an ACK is outstanding", async () => {
    const world = await quietWorld("d0", "d1", "c0");
    world.proxy("d0").beginWrite("b", "configmaps");
    world.setApp(A_AND_B_TO_CANARY);
    await round(world, "d0", "d1", "c0");
    await world.reconcile();
    world.setApp(A_TO_CANARY);
    await world.reconcile();
    await world.settle();
    expect(holders(world)).toEqual(holdersBySubset(["d0", "d1"], ["c0"]));
    for (const { nacks } of world.proxies.values()) expect(nacks).toEqual([]);
    expect(ready(world)).toMatchObject({ status: "True", reason: "InSync" });
  });

  it("a VirtualApp made anew under its name while a snapshot of the old one is on its way", async () => {
    const world = await quietWorld("d0", "c0");
    world.deletePod("c0");
    world.setApp(A_AND_B_TO_CANARY);
    await world.reconcile();
    world.deleteApp();
    await world.reconcile(); // which forgets the versions
    world.setApp(A_TO_CANARY);
    await world.reconcile();
    await world.settle();
    expect(world.proxy("d0").nacks).toEqual([]);
    expect(holders(world)).toEqual({ a: {}, b: { "": ["d0"] }, c: { "": ["d0"] } });
  });

  it("an evicted pod", async () => {
    const world = await quietWorld("d0", "d1", "c0");
    world.evictPod("d1");
    world.setApp(A_AND_B_TO_CANARY);
    await world.settle();
    expect(holders(world)).toEqual({ a: { canary: ["c0"] }, b: { canary: ["c0"] }, c: { "": ["d0"] } });
    expect(world.status()?.handover).toBeUndefined();
    expect(world.status()?.proxies).toEqual({ total: 2, connected: 2, synced: 2 });
  });
});

describe("what the status says", () => {
  it("Ready False SnapshotRefused is cleared when the rules are put back", async () => {
    const world = await quietWorld("d0", "c0");
    world.setApp(A_AND_B_TO_CANARY);
    await world.reconcile();
    world.proxy("d0").refuse("table.rules[0].kind: X is not known to this proxy");
    await round(world, "d0");
    await world.reconcile();
    expect(ready(world)).toMatchObject({ status: "False", reason: "SnapshotRefused" });
    world.setApp(A_TO_CANARY);
    await world.settle();
    expect(ready(world)).toMatchObject({ status: "True", reason: "InSync" });
  });

  it("Ready is not True while nothing is in sync", async () => {
    const world = createMeshWorld();
    world.setApp(A_TO_CANARY);
    world.setPod("bare", { injected: null });
    world.setPodStatus("bare", { phase: "Running", conditions: [{ type: "Ready", status: "True" }] });
    world.setPod("c0", { subset: "canary" }); // which does not find the manager
    world.setPodStatus("c0", { phase: "Running", conditions: [{ type: "Ready", status: "True" }] });
    for (let times = 0; times < 3; times++) await world.reconcile();
    expect(world.status()?.proxies).toEqual({ total: 1, connected: 0, synced: 0 });
    expect(ready(world)?.status).toBe("False");
  });

  it("a restart reports no moves", async () => {
    const world = await quietWorld("d0", "c0");
    const before = world.events.length;
    world.restartManager();
    await world.reconcile();
    expect(world.status()).toMatchObject({ namespaces: { moving: 0 } });
    expect(world.status()?.handover).toBeUndefined();
    await world.settle();
    expect(world.events.slice(before)).toEqual([]);
    expect(ready(world)).toMatchObject({ status: "True", reason: "InSync" });
  });
});
