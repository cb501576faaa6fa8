import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../../../test/support/fake-kube-client.ts";
import { sampleShardingRoot } from "../../../../test/support/sharding-config.ts";
import { INJECTED_LABEL, PROXY_CONTAINER } from "../../../api/injected-pod.ts";
import { SHARDING_CONFIGS } from "../../../api/resources.ts";
import type { ShardingConfig } from "../../../api/sharding-config.ts";
import { silentLogger } from "../../../base/log.ts";
import { type Pod, STATEFUL_SETS, type StatefulSet } from "../../../kube/client/resources.ts";
import type { KubeObject } from "../../../kube/types.ts";
import { createStore } from "../../../runtime/store.ts";
import { type NamespacesAbroad, NONE_ABROAD } from "../cluster-names.ts";
import { createPlacementReconciler } from "./add.ts";

const { signal } = new AbortController();
const ROOT = { namespace: "ops", name: "shop" };
const AUTO = { everyShardReplicas: 1, graceSeconds: 60 };
const fail = (error: unknown) => {
  throw error;
};

function setUp(root: object = {}, spec: object = {}) {
  const [client, clock] = [createFakeKubeClient(), createFakeClock()];
  const configs = createStore<ShardingConfig>(fail);
  const namespaces = createStore<KubeObject>(fail);
  namespaces.replace(["a", "b", "c"].map((name) => ({ metadata: { name, uid: name, resourceVersion: "1" } })));
  let pods: Pod[] | undefined = [];
  let abroad = NONE_ABROAD;
  const lists = { pods: { list: () => pods }, abroad: () => abroad };
  const options = { client, configs, namespaces, clock, ...lists, log: silentLogger() };
  const put = (fields: object = {}, more: object = {}, placement?: object) =>
    client.put(SHARDING_CONFIGS, {
      ...sampleShardingRoot({ canary: undefined, auto: AUTO, ...root, ...fields }, { ...spec }),
      metadata: { ...ROOT, ...more },
      ...(placement === undefined ? {} : { status: { placement } }),
    } as unknown as ShardingConfig);
  put();
  const read = () => client.read<ShardingConfig>(SHARDING_CONFIGS, ROOT)?.status?.placement;
  return {
    client,
    clock,
    put,
    read,
    reconciler: createPlacementReconciler(options),
    stored: () => read() ?? {},
    scale: (replicas: number, start = 0) =>
      client.put(STATEFUL_SETS, {
        metadata: { namespace: "ops", name: "shop-operator" },
        spec: { replicas, ordinals: { start } },
      } as unknown as StatefulSet),
    ready(...ordinals: number[]) {
      const status = { conditions: [{ type: "Ready", status: "True" }] };
      const labels = { [INJECTED_LABEL]: "shop" };
      const spec = { initContainers: [{ name: PROXY_CONTAINER }] };
      pods = ordinals.map(
        (ordinal) => ({ metadata: { name: `shop-operator-${ordinal}`, labels }, spec, status }) as unknown as Pod,
      );
    },
    /** What is known of the namespaces of other clusters. */
    abroad(known: NamespacesAbroad) {
      abroad = known;
    },
    unlisted() {
      pods = undefined;
    },
    /** The watch catches up. */
    async see() {
      configs.replace((await client.list(SHARDING_CONFIGS, {})).items);
    },
    async reconcile() {
      await this.see();
      client.calls.length = 0;
      const result = await this.reconciler.reconcile(ROOT, signal);
      return { result, writes: client.calls.filter(({ verb }) => verb === "patch").length };
    },
  };
}

describe("the placement of a root", () => {
  it("counts the namespaces of other clusters, and looks again later while they are not known", async () => {
    const world = setUp({ placement: "Balanced" });
    world.scale(2);
    world.ready(0, 1);
    await world.reconcile();
    world.scale(3);
    world.ready(0, 1, 2);
    world.abroad({ known: [], isComplete: false, awaitedUntilMs: world.clock.now() + 30_000 });
    expect((await world.reconcile()).result).toEqual({ requeueAfterMs: 30_000 });
    expect(world.stored()).toMatchObject({ active: [1, 2] });
    const names = Array.from({ length: 300 }, (_, at) => `team-${at}`);
    world.abroad({ known: [{ cluster: "eu", names }], isComplete: true });
    await world.reconcile();
    expect(world.stored()).toMatchObject({ active: [1, 2, 3], moves: [{ namespaces: expect.toSatisfy((moved) => moved > 90) }] });
  });

  it("is written once, and not again for equal facts", async () => {
    const world = setUp();
    world.scale(3);
    world.ready(0, 1, 2);
    expect(await world.reconcile()).toMatchObject({ writes: 1 });
    expect(world.stored()).toEqual({ start: 0, shards: 3, active: [1, 2, 3] });
    expect(await world.reconcile()).toEqual({ result: {}, writes: 0 });
  });

  it("waits for the StatefulSet and for the list of pods", async () => {
    const world = setUp();
    expect(await world.reconcile()).toEqual({ result: {}, writes: 0 });
    world.scale(2);
    world.unlisted();
    expect(await world.reconcile()).toEqual({ result: {}, writes: 0 });
  });

  it("follows the StatefulSet from 5 to 9 and back to 5, with ordinals from 3", async () => {
    const world = setUp();
    world.scale(5, 3);
    world.ready(3, 4, 5, 6, 7);
    await world.reconcile();
    const before = world.read();
    expect(world.stored()).toMatchObject({ start: 3, active: [1, 2, 3, 4, 5] });
    world.scale(9, 3);
    world.ready(3, 4, 5, 6, 7, 8);
    expect(await world.reconcile()).toMatchObject({ result: { requeueAfterMs: 120_000 } });
    expect(world.stored()).toMatchObject({ shards: 9, active: [1, 2, 3, 4, 5] });
    world.ready(3, 4, 5, 6, 7, 8, 9, 10, 11);
    await world.reconcile();
    expect(world.stored()).toMatchObject({ active: [1, 2, 3, 4, 5, 6, 7, 8, 9] });
    world.scale(5, 3);
    await world.reconcile();
    expect(world.read()).toEqual(before);
  });

  it("stays while the StatefulSet is deleted and created again, and looks again when the grace time ends", async () => {
    const world = setUp();
    world.scale(2);
    world.ready(0, 1);
    await world.reconcile();
    const before = world.stored();
    world.client.remove(STATEFUL_SETS, { namespace: "ops", name: "shop-operator" });
    world.ready(0);
    const { result } = await world.reconcile();
    expect(result).toEqual({ requeueAfterMs: 60_000 });
    expect(world.stored()).toMatchObject({ shards: 2, active: [1, 2] });
    world.scale(2);
    world.ready(0, 1);
    await world.reconcile();
    expect(world.stored()).toEqual(before);
  });

  it.each([{}, { start: 0 }, { start: 0, shards: 2, active: [] }])("is made anew if it cannot be read: %j", async (stored) => {
    const world = setUp();
    world.scale(2);
    world.put({}, {}, stored);
    expect(await world.reconcile()).toMatchObject({ writes: 1 });
    expect(world.stored()).toMatchObject({ shards: 2, active: [1, 2] });
  });

  it("of which somebody invented a shard loses that shard", async () => {
    const world = setUp();
    world.scale(2);
    world.put({}, {}, { start: 0, shards: 9, active: [1, 9] });
    world.ready(0, 1);
    await world.reconcile();
    expect(world.stored()).toMatchObject({ shards: 2, active: [1, 2] });
  });

  it("is not written over a root that has changed since it was read", async () => {
    const world = setUp();
    world.scale(2);
    await world.see();
    world.put({ auto: { everyShardReplicas: 2 } });
    await expect(world.reconciler.reconcile(ROOT, signal)).rejects.toMatchObject({ status: { reason: "Conflict" } });
    expect(world.read()).toBeUndefined();
  });

  it.each<[string, object, object]>([
    ["disabled", { disable: true }, {}],
    ["invalid", { prefix: "Not A Name" }, {}],
    ["being deleted", {}, { deletionTimestamp: "2026-01-01T00:00:00Z" }],
  ])("stays as it is while the root is %s", async (_, fields, metadata) => {
    const world = setUp();
    world.scale(2);
    world.put(fields, metadata);
    expect(await world.reconcile()).toEqual({ result: {}, writes: 0 });
  });
});
