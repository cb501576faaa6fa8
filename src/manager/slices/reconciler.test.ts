import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient, type FakeCall } from "../../../test/support/fake-kube-client.ts";
import { modelApp } from "../../../test/support/model-app.ts";
import { subset, table } from "../../../test/support/route-table.ts";
import { appOf } from "../../../test/support/source-apps.ts";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import { type OwnershipSlice, SLICE_APP_LABEL } from "../../api/ownership-slice.ts";
import { OWNERSHIP_SLICES, VIRTUAL_APPS } from "../../api/resources.ts";
import { StatusError } from "../../kube/status.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import type { ClusterTables } from "../../mesh/ownership/snapshot.ts";
import { createStore } from "../../runtime/store.ts";
import type { App } from "../apps/app.ts";
import { createPublishedPlans } from "../apps/published-plans.ts";
import { createSlicesReconciler, UNHEARD_MS } from "./reconciler.ts";

const { signal } = new AbortController();
const REF = { namespace: "ops", name: "shop" };
const FIRST = { namespace: "ops", name: "shop-0" };

function setUp({ isOn = true } = {}) {
  const [clock, client] = [createFakeClock(), createFakeKubeClient()];
  const slices = createStore<KubeObject>((error) => {
    throw error;
  });
  slices.replace([], "100");
  const object = client.put(VIRTUAL_APPS, sampleVirtualApp() as never);
  let app: App | undefined = appOf(object);
  const model = modelApp(["prod", "mover"], {});
  model.pod("d", "").pod("c", "v2").settle();
  const events: string[] = [];
  const record = (_: unknown, _type: string, reason: string, message: string) => void events.push(`${reason}: ${message}`);
  const lead = () => {
    const plans = createPublishedPlans();
    const options = { client, clock, slices, plans, isOn, events: { event: record } };
    const sources = [{ resource: VIRTUAL_APPS }] as never;
    const reconciler = createSlicesReconciler({ ...options, sources, apps: { get: () => app } });
    return { plans, reconciler };
  };
  let leader = lead();
  const world = {
    client,
    clock,
    model,
    events,
    object,
    /** @param clusters the other clusters that the pods' routes have @param clusterTables the owners inside these */
    publish(clusters?: readonly ClusterRoute[], clusterTables?: ClusterTables) {
      const plan = model.plan();
      const rules = new Map([...plan.rules].map(([subset, each]) => [subset, { ...each, clusters, clusterTables }]));
      const tables = [...(clusterTables ?? [])].map(([name, { classOf, classes }]) => [name, [...classOf], classes]);
      leader.plans.set(REF, { ...plan, rules, clusterTables, digest: plan.digest + JSON.stringify([clusters, tables]) });
    },
    /** The watch catches up. */
    async see() {
      slices.replace((await client.list(OWNERSHIP_SLICES, { namespace: "ops" })).items.map(({ metadata }) => ({ metadata })));
      client.calls.length = 0;
    },
    async reconcile() {
      const ended = leader.reconciler.reconcile(REF, signal);
      const settled = ended.then(
        () => true,
        () => true,
      );
      while (!(await Promise.race([settled, clock.advance(100).then(() => false)]))) {}
      return ended;
    },
    /** Reconciles until nothing is written any more; returns the writes. */
    async settle() {
      const writes: string[] = [];
      for (let round = 0; round < 5; round++) {
        await world.see();
        await world.reconcile();
        const made = writesOf(client.calls);
        if (made.length === 0) return writes;
        writes.push(...made);
      }
      throw new Error(`still writes: ${writes.join(", ")}`);
    },
    failOver: () => {
      leader = lead();
    },
    set app(next: App | undefined) {
      app = next;
    },
    read: (of = FIRST) => client.read<OwnershipSlice>(OWNERSHIP_SLICES, of),
  };
  return world;
}

const writesOf = (calls: readonly FakeCall[]) =>
  calls.filter(({ verb }) => !["get", "list", "watch"].includes(verb)).map(({ verb, name }) => `${verb} ${name}`);
const entryOf = (slice: OwnershipSlice | undefined, namespace: string) =>
  slice?.ownership.find(({ namespaces }) => namespaces?.includes(namespace));

it("creates the slices of an app with its label and owner, and then writes nothing", async () => {
  const world = setUp();
  expect(await world.settle()).toEqual([]); // nothing is known yet
  world.publish();
  expect(await world.settle()).toEqual(["create shop-0"]);
  expect(world.read()).toMatchObject({
    metadata: {
      labels: { [SLICE_APP_LABEL]: "shop" },
      ownerReferences: [{ kind: "VirtualApp", name: "shop", uid: world.object.metadata.uid, controller: true }],
    },
    app: "shop",
    places: 3,
    moving: 0,
    ownership: [{ state: "Owned", owners: [{ subset: "default" }], namespaces: ["mover", "prod"], clusterScope: true }],
  });
  world.publish();
  expect(await world.settle()).toEqual([]);
});

it("shows a move with its time, and the times of what stays", async () => {
  const world = setUp();
  world.publish();
  await world.settle();
  const before = entryOf(world.read(), "prod")?.since;
  await world.clock.advance(60_000);
  world.model.wish({ canary: ["mover"] }).reconcile();
  world.publish();
  expect(await world.settle()).toEqual(["update shop-0"]);
  const moving = entryOf(world.read(), "mover");
  expect(moving).toMatchObject({ state: "Moving", from: ["default"], owners: [{ subset: "canary" }] });
  expect(world.read()?.moving).toBe(1);
  expect([entryOf(world.read(), "prod")?.since, moving?.since === before]).toEqual([before, false]);
});

it("puts back what somebody else has edited, and a slice that was deleted, with its times", async () => {
  const world = setUp();
  world.publish();
  await world.settle();
  const right = world.read();
  await world.clock.advance(60_000);
  if (right === undefined) throw new Error("no slice");
  world.client.put(OWNERSHIP_SLICES, { ...right, places: 9, ownership: [] });
  expect(await world.settle()).toEqual(["update shop-0"]);
  expect(world.read()?.ownership).toEqual(right.ownership);
  world.client.put(OWNERSHIP_SLICES, { ...right, metadata: { ...right.metadata, labels: {}, ownerReferences: [] } });
  expect(await world.settle()).toEqual(["update shop-0"]);
  world.client.remove(OWNERSHIP_SLICES, FIRST);
  expect(await world.settle()).toEqual(["create shop-0"]);
  expect(world.read()?.ownership).toEqual(right.ownership);
});

it("gives the slices to the next object of a family when the first one leaves it", async () => {
  const world = setUp();
  world.publish();
  await world.settle();
  const next = { ...world.object, metadata: { ...world.object.metadata, name: "second", uid: "uid-of-second" } };
  world.app = { ...appOf(world.object), object: next };
  expect(await world.settle()).toEqual(["update shop-0"]);
  expect(world.read()?.metadata.ownerReferences).toMatchObject([{ name: "second", uid: "uid-of-second" }]);
});

it("deletes a slice with the app's label that it has not written", async () => {
  const world = setUp();
  world.publish();
  await world.settle();
  const metadata = { namespace: "ops", name: "lie", labels: { [SLICE_APP_LABEL]: "shop" } };
  const entry = { state: "Owned", owners: [{ subset: "v2" }], since: "2020-01-01T00:00:00Z", namespaces: ["prod"] };
  world.client.put(OWNERSHIP_SLICES, { metadata, app: "shop", places: 1, moving: 0, ownership: [entry] } as never);
  expect(await world.settle()).toEqual(["delete lie"]);
  expect(entryOf(world.read(), "prod")?.owners).toEqual([{ subset: "default" }]);
});

it("a new leader keeps the times, and says nothing before the pods have reported or half a minute is over", async () => {
  const world = setUp();
  world.publish();
  await world.settle();
  const before = world.read();
  await world.clock.advance(60_000);
  world.failOver();
  world.model.failOver();
  world.publish();
  expect(await world.settle()).toEqual([]);
  await world.clock.advance(UNHEARD_MS);
  expect(await world.settle()).toEqual(["update shop-0"]);
  expect(entryOf(world.read(), "prod")).toMatchObject({ state: "Fenced", since: entryOf(before, "prod")?.since });
  world.model.report("d").report("c");
  world.publish();
  expect(await world.settle()).toEqual(["update shop-0"]);
  expect(world.read()?.ownership).toEqual(before?.ownership);
});

it("a slice that cannot be written is reported once and tried again, and its places stay in the old one", async () => {
  const world = setUp();
  world.publish();
  world.client.before = ({ verb }) => {
    if (verb === "create" || verb === "update") throw new StatusError("Forbidden", "exceeded quota: slices");
  };
  await expect(world.settle()).rejects.toThrow("exceeded quota");
  await expect(world.settle()).rejects.toThrow("exceeded quota");
  expect(world.events).toEqual([
    "OwnershipNotPublished: the OwnershipSlices are out of date, which changes no owner: exceeded quota: slices",
  ]);
  world.client.before = () => undefined;
  expect(await world.settle()).toEqual(["create shop-0"]);
});

it("deletes no slice while another one could not take its places", async () => {
  const world = setUp();
  const places = (from: number, count: number) => Array.from({ length: count }, (_, at) => `ns-${from + at}`);
  world.model.wish({}, places(0, 1_500));
  world.publish();
  expect(await world.settle()).toEqual(["create shop-0", "create shop-1"]);
  const small = modelApp(places(0, 900), {});
  small.pod("d", "").settle();
  Object.assign(world.model, { plan: small.plan });
  world.publish();
  world.client.before = ({ verb }) => {
    if (verb === "update") throw new StatusError("Conflict", "modified");
  };
  await expect(world.settle()).rejects.toThrow("modified");
  expect(writesOf(world.client.calls)).toEqual(["update shop-0"]);
  expect(world.events).toEqual([]);
  world.client.before = () => undefined;
  expect(await world.settle()).toEqual(["update shop-0", "delete shop-1"]);
});

it.each(["is switched off", "is disabled and its pods own everything"])("deletes the slices when it %s", async (when) => {
  const world = setUp({ isOn: when !== "is switched off" });
  const metadata = { ...FIRST, labels: { [SLICE_APP_LABEL]: "shop" } };
  world.client.put(OWNERSHIP_SLICES, { metadata, app: "shop", places: 0, moving: 0, ownership: [] } as never);
  if (when !== "is switched off") world.app = { ...appOf(world.object), isEnding: true };
  world.publish();
  expect(await world.settle()).toEqual(["delete shop-0"]);
});

it("deletes what a deleted app has left without an owner", async () => {
  const world = setUp();
  const metadata = { ...FIRST, labels: { [SLICE_APP_LABEL]: "shop" } };
  world.client.put(OWNERSHIP_SLICES, { metadata, app: "shop", places: 0, moving: 0, ownership: [] } as never);
  world.app = undefined;
  expect(await world.settle()).toEqual(["delete shop-0"]);
});

it("other clusters are published with their owners, and are gone with their MeshClusters", async () => {
  const world = setUp();
  world.publish([{ name: "eu-1", servers: ["eu-1:443"], drainMs: 1, owner: "canary" }]);
  await world.settle();
  const clusters = () => world.read()?.ownership.flatMap((entry) => entry.clusters ?? []);
  expect(clusters()).toEqual(["eu-1"]);
  world.publish([]);
  await world.settle();
  expect(clusters()).toEqual([]);
});

const divided = (name: string): ClusterRoute => ({
  name,
  servers: [`${name}:443`],
  drainMs: 1,
  owner: "",
  upstream: { url: `https://${name}` },
  isFenced: true,
});
const inside = (members: Readonly<Record<string, readonly number[]>>) => table([subset("canary")], members);

it("the namespaces inside each other cluster have slices of their own, and a move there writes one of them", async () => {
  const world = setUp();
  const clusters = [divided("eu-1"), divided("us-1")];
  const us = inside({ "team-a": [], "team-b": [0] });
  world.publish(
    clusters,
    new Map([
      ["eu-1", inside({ "team-a": [] })],
      ["us-1", us],
    ]),
  );
  expect(await world.settle()).toEqual(["create shop-0", "create shop-1", "create shop-2"]);
  const euOwners = () =>
    world.read({ namespace: "ops", name: "shop-1" })?.ownership.map(({ owners, insideClusters }) => [owners, insideClusters]);
  expect(euOwners()).toEqual([[[{ subset: "default" }], [{ cluster: "eu-1", namespaces: ["team-a"], clusterScope: true }]]]);
  world.publish(
    clusters,
    new Map([
      ["eu-1", inside({ "team-a": [0] })],
      ["us-1", us],
    ]),
  );
  expect(await world.settle()).toEqual(["update shop-1"]);
  world.publish([divided("us-1")], new Map([["us-1", us]]));
  expect(await world.settle()).toEqual(["delete shop-1"]);
});

it("slices inside a cluster that somebody has edited or deleted are put right, and no others are written", async () => {
  const world = setUp();
  const tables = new Map([["eu-1", inside({ "team-a": [] })]]);
  world.publish([divided("eu-1")], tables);
  await world.settle();
  const second = { namespace: "ops", name: "shop-1" };
  const right = world.read(second);
  world.client.put(OWNERSHIP_SLICES, { ...(right as OwnershipSlice), places: 0, ownership: [] });
  expect(await world.settle()).toEqual(["update shop-1"]);
  world.client.remove(OWNERSHIP_SLICES, second);
  expect(await world.settle()).toEqual(["create shop-1"]);
  expect(world.read(second)?.ownership).toEqual(right?.ownership);
});

it("a new leader keeps the owners inside a cluster that it cannot read yet, for half a minute", async () => {
  const world = setUp();
  const tables = new Map([["eu-1", inside({ "team-a": [] })]]);
  world.publish([divided("eu-1")], tables);
  await world.settle();
  world.failOver();
  world.publish([divided("eu-1")]);
  expect(await world.settle()).toEqual([]);
  world.publish([divided("eu-1")], tables);
  expect(await world.settle()).toEqual([]);
  world.publish([divided("eu-1")]);
  expect(await world.settle()).toEqual([]);
  await world.clock.advance(UNHEARD_MS);
  expect(await world.settle()).toEqual(["delete shop-1"]);
});
