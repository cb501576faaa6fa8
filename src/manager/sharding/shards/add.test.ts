import { expect, it } from "vitest";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { createFakeKubeClient, type FakeCall } from "../../../../test/support/fake-kube-client.ts";
import { sampleShardingConfig, sampleShardingRoot } from "../../../../test/support/sharding-config.ts";
import { SHARDING_CONFIGS } from "../../../api/resources.ts";
import type { ShardingConfig } from "../../../api/sharding-config.ts";
import { AUTO_SHARDING_ROOT } from "../../../api/sharding-keys.ts";
import { silentLogger } from "../../../base/log.ts";
import type { Informers } from "../../../runtime/informers.ts";
import { createStore } from "../../../runtime/store.ts";
import { createApps } from "../../apps/app.ts";
import { createShardingSource } from "../sharding-source.ts";
import { createShardsReconciler } from "./add.ts";

const { signal } = new AbortController();
const CHILDREN = ["shop-0-canary", "shop-1-normal", "shop-2-normal"];
const placement = (shards: number) => ({ start: 0, shards, active: Array.from({ length: shards }, (_, index) => index + 1) });

function setUp() {
  const [clock, client] = [createFakeClock(), createFakeKubeClient()];
  const configs = createStore<ShardingConfig>((error) => {
    throw error;
  });
  const apps = createApps({ store: () => configs } as unknown as Informers, [createShardingSource()]);
  const reconciler = createShardsReconciler({ client, clock, configs, apps, log: silentLogger() });
  const ref = (name: string) => ({ namespace: "ops", name });
  const world = {
    client,
    clock,
    put(object: Readonly<Record<string, unknown>>, metadata: object): ShardingConfig {
      return client.put(SHARDING_CONFIGS, { ...object, metadata: { namespace: "ops", generation: 1, ...metadata } } as never);
    },
    putRoot: (spec: object = {}, metadata: object = {}, stored: object = placement(2)) =>
      world.put({ ...sampleShardingRoot(spec as never), status: { placement: stored } }, { name: "shop", ...metadata }),
    read: (name: string) => client.read<ShardingConfig>(SHARDING_CONFIGS, ref(name)),
    /** The watch catches up. */
    async see() {
      configs.replace((await client.list(SHARDING_CONFIGS, { namespace: "ops" })).items);
      client.calls.length = 0;
    },
    /** The watch brings this object, and not yet what else has changed. */
    seeOnly: (object: ShardingConfig) => configs.upsert(object),
    /** Reconciles until nothing is written any more; returns the writes. */
    async settle(family = "shop") {
      const writes: string[] = [];
      for (let round = 0; round < 5; round++) {
        await world.see();
        const { requeueAfterMs = 0 } = await reconciler.reconcile(ref(family), signal);
        if (requeueAfterMs > 0) {
          await clock.advance(requeueAfterMs);
          await reconciler.reconcile(ref(family), signal);
        }
        const made = client.calls.filter(isWrite).map(({ verb, name }) => `${verb} ${name}`);
        if (made.length === 0) return writes;
        writes.push(...made);
      }
      throw new Error(`still writes: ${writes.join(", ")}`);
    },
    once: (family = "shop") => reconciler.reconcile(ref(family), signal),
    names: async () =>
      (await client.list(SHARDING_CONFIGS, { namespace: "ops" })).items.map(({ metadata }) => metadata.name).sort(),
  };
  return world;
}

const isWrite = ({ verb }: FakeCall) => !["get", "list", "watch"].includes(verb);

it("creates the children of a root with their owner and their status, and then writes nothing", async () => {
  const { putRoot, settle, read } = setUp();
  const root = putRoot();
  const writes = await settle();
  expect(writes.filter((write) => write.startsWith("create"))).toEqual(CHILDREN.map((name) => `create ${name}`));
  expect(read("shop-1-normal")).toMatchObject({
    metadata: { ownerReferences: [{ uid: root.metadata.uid, controller: true }], labels: { [AUTO_SHARDING_ROOT]: "shop" } },
    status: { family: "shop", shard: "shop-1-normal" },
  });
  expect(await settle()).toEqual([]);
});

it("waits with the children until the root has a placement, and keeps those that exist", async () => {
  const { putRoot, settle, names } = setUp();
  putRoot({}, {}, {});
  expect(await settle()).toEqual([]);
  putRoot();
  await settle();
  putRoot({}, {}, { start: 0 });
  await settle();
  expect(await names()).toEqual(["shop", ...CHILDREN]);
});

it("repairs what somebody edited in a child, in place, and keeps labels that it does not know", async () => {
  const { putRoot, settle, read, put } = setUp();
  putRoot();
  await settle();
  const before = read("shop-1-normal");
  const spec = { ...before?.spec, limits: [], paused: true };
  put({ ...before, spec }, { ...before?.metadata, labels: { mine: "x" } });
  expect(new Set(await settle())).toEqual(new Set(["patch shop-1-normal"]));
  expect(read("shop-1-normal")?.spec).toEqual(before?.spec);
  expect(read("shop-1-normal")?.metadata).toMatchObject({
    uid: before?.metadata.uid,
    labels: { mine: "x", [AUTO_SHARDING_ROOT]: "shop" },
  });
});

it.each<[string, object, object]>([
  ["selector", { auto: { shardingSize: 2, everyShardReplicas: 3 } }, {}],
  ["lock, which a root may set later,", {}, { controller: { leaderElectionName: "later" } }],
])("makes a child anew if its %s changes, because a stored child cannot change it", async (_, root, spec) => {
  const { put, settle, read } = setUp();
  const metadata = { name: "shop" };
  const status = { placement: placement(2) };
  const auto = { auto: { shardingSize: 2, everyShardReplicas: 2 } };
  put({ ...sampleShardingRoot(auto, { controller: undefined }), status }, metadata);
  await settle();
  const before = read("shop-2-normal");
  put({ ...sampleShardingRoot({ ...auto, ...root }, { controller: undefined, ...spec }), status }, metadata);
  const writes = await settle();
  expect(writes.indexOf("delete shop-2-normal")).toBeLessThan(writes.indexOf("create shop-2-normal"));
  expect(read("shop-2-normal")?.metadata.uid).not.toBe(before?.metadata.uid);
  expect(read("shop-2-normal")?.spec).not.toEqual(before?.spec);
});

it("deletes the children that the root should no longer have, and all of them when it is disabled or deleted", async () => {
  const { putRoot, settle, names } = setUp();
  putRoot();
  await settle();
  putRoot({}, {}, placement(1));
  expect(await settle()).toContain("delete shop-2-normal");
  expect(await names()).toEqual(["shop", "shop-0-canary", "shop-1-normal"]);
  putRoot({ disable: true });
  await settle();
  expect(await names()).toEqual(["shop"]);
  putRoot();
  await settle();
  putRoot({}, { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["ctrlmesh.kruise.io/routes"] });
  await settle();
  expect(await names()).toEqual(["shop"]);
});

it("does not touch children while the root is refused", async () => {
  const { putRoot, settle, names } = setUp();
  putRoot();
  await settle();
  putRoot({ prefix: "Not A Name" });
  await settle();
  expect(await names()).toEqual(["shop", ...CHILDREN]);
});

it("does not touch an object with the name of a child that another root owns", async () => {
  const { putRoot, put, settle, read } = setUp();
  putRoot();
  const kind = { apiVersion: "ctrlmesh.kusionstack.io/v1alpha1", kind: "ShardingConfig", name: "former", uid: "gone" };
  const foreign = put(sampleShardingConfig(), { name: "shop-1-normal", ownerReferences: [{ ...kind, controller: true }] });
  await settle();
  expect(read("shop-1-normal")).toEqual(foreign);
  expect(read("shop-2-normal")).toBeDefined();
});

it("leaves a child that somebody just made, or that is being deleted, to the next change", async () => {
  const { client, putRoot, settle, see, once, put, read } = setUp();
  putRoot();
  await settle();
  const child = read("shop-1-normal");
  client.remove(SHARDING_CONFIGS, { namespace: "ops", name: "shop-1-normal" });
  await see();
  put({ ...child }, { ...child?.metadata });
  await expect(once()).resolves.toEqual({});
  put({ ...child, spec: {} }, { ...child?.metadata, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["mine"] });
  expect((await settle()).filter((write) => !write.startsWith("patch"))).toEqual([]);
  expect(read("shop-1-normal")?.spec).toEqual({});
});

const condition = { type: "Ready", status: "True", reason: "InSync", message: "m", lastTransitionTime: "2025-01-01T00:00:00Z" };
const shard = (name: string, namespaces: number, more: object = {}) => ({ name, namespaces, readyPods: 1, pods: 2, ...more });

it("knows its own writes before the watch brings them, so that its next change of a child is no conflict", async () => {
  const { client, put, settle, see, seeOnly, once, read, clock } = setUp();
  const putRoot = (resource: string, status: object) => {
    const resourceSelector = [{ relateResources: [{ apiGroups: [""], resources: [resource] }] }];
    return put({ ...sampleShardingRoot({ resourceSelector }), status: { placement: placement(2), ...status } }, { name: "shop" });
  };
  const writes = async () => {
    client.calls.length = 0;
    await once();
    return client.calls.map(({ verb, name }) => `${verb} ${name}`);
  };
  putRoot("pods", {});
  await settle();
  const status = { conditions: [condition], subsets: CHILDREN.map((name) => shard(name, 3)) };
  putRoot("pods", status);
  await see();
  await clock.advance(5_000);
  const patches = CHILDREN.map((name) => `patch ${name}`);
  expect(await writes()).toEqual(patches);
  for (const name of CHILDREN) expect(read(name)?.status).toMatchObject({ shardNamespaces: 3, shardPods: "1/2" });
  for (const resource of ["services", "secrets"]) {
    seeOnly(putRoot(resource, status));
    expect(await writes()).toEqual(patches);
    for (const name of CHILDREN) expect(read(name)?.spec.limits?.[0]?.relateResources?.[0]?.resources).toEqual([resource]);
  }
});

it("writes the statuses of a family at most every 5 seconds, and the last one too", async () => {
  const { put, settle, see, once, read, clock } = setUp();
  const putRoot = (namespaces: number) => {
    const subsets = CHILDREN.map((name, at) => shard(name, at === 1 ? namespaces : 3));
    const status = { placement: placement(2), conditions: [condition], subsets };
    return put({ ...sampleShardingRoot(), status }, { name: "shop" });
  };
  putRoot(3);
  await settle();
  await clock.advance(5_000);
  const versions = new Set<unknown>();
  for (let namespaces = 4; namespaces <= 103; namespaces++) {
    putRoot(namespaces);
    await see();
    const { requeueAfterMs } = await once();
    const isLate = read(CHILDREN[1] ?? "")?.status?.shardNamespaces !== namespaces;
    expect(requeueAfterMs !== undefined && requeueAfterMs <= 5_000).toBe(isLate);
    versions.add(read(CHILDREN[1] ?? "")?.metadata.resourceVersion);
    await clock.advance(100);
  }
  expect(versions.size).toBe(2);
  await clock.advance(5_000);
  await see();
  expect(await once()).toEqual({});
  expect(read(CHILDREN[1] ?? "")?.status?.shardNamespaces).toBe(103);
});

it("gives each hand-written config but the first the status of its shard, and none to one that leaves", async () => {
  const { put, settle, read } = setUp();
  const status = { routeVersion: 7, subsets: [shard("b", 4)], conditions: [condition, { ...condition, type: "Converged" }] };
  const config = (name: string) => sampleShardingConfig({ selector: { matchLabels: { shard: name } } });
  put({ ...config("a"), status }, { name: "a" });
  put(config("b"), { name: "b", generation: 5 });
  put(config("c"), { name: "c", deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["mine"] });
  expect(await settle("shop-lock")).toEqual(["patch b"]);
  expect(read("a")?.status).toEqual(status);
  expect(read("b")?.status).toEqual({
    observedGeneration: 5,
    family: "shop-lock",
    shard: "b",
    shardPods: "1/2",
    shardNamespaces: 4,
    conditions: [
      {
        type: "Ready",
        status: "True",
        reason: "Serving",
        message: "the pods of the shard serve its namespaces",
        observedGeneration: 5,
        lastTransitionTime: "2026-01-01T00:00:00Z",
      },
    ],
  });
});
