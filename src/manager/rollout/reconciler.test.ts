import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { proxyFacts } from "../../../test/support/pod-facts.ts";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { ROLL_EXPECTED, ROLLING } from "../../api/sharding-keys.ts";
import { createLogger } from "../../base/log.ts";
import { type Pod, REVISION_LABEL, type StatefulSet } from "../../kube/client/resources.ts";
import { StatusError } from "../../kube/status.ts";
import { createEvictor } from "../restart/evictor.ts";
import { createShardingSource } from "../sharding/sharding-source.ts";
import { createRolloutReconciler } from "./reconciler.ts";

const NAMESPACE = "ops";
const ROOT = { namespace: NAMESPACE, name: "shop" };
const placement = { start: 0, shards: 1, active: [1] };

const rootConfig = {
  apiVersion: "ctrlmesh.kusionstack.io/v1alpha1",
  kind: "ShardingConfig",
  metadata: { ...ROOT, uid: "root", resourceVersion: "7", generation: 1 },
  status: { placement },
  spec: {
    root: {
      prefix: "shop",
      targetStatefulSet: "shop",
      auto: { everyShardReplicas: 2 },
      resourceSelector: [{ relateResources: [{ apiGroups: [""], resources: ["configmaps"] }] }],
    },
  },
} as unknown as ShardingConfig;

function podOf(name: string, uid: string, revision: string): Pod {
  const labels = {
    [REVISION_LABEL]: revision,
    "statefulset.kubernetes.io/pod-name": name,
    "ctrlmesh.kruise.io/virtual-app-injected": "shop",
  };
  const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: "shop", uid: "set", controller: true };
  const status = { conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }] } as const;
  return { metadata: { namespace: NAMESPACE, name, uid, labels, ownerReferences: [owner] }, status };
}

/** A StatefulSet of two pods with the old revision, and a scripted API server. */
function setUp() {
  const clock = createFakeClock();
  const done: string[] = [];
  const world = {
    config: rootConfig,
    pods: [podOf("shop-0", "a", "old"), podOf("shop-1", "b", "old")],
    labels: { [ROLLING]: "" } as Record<string, string>,
    answer: (): unknown => undefined,
    onPatch: (): void => undefined,
    onStatus: (): void => undefined,
    isLeading: true,
  };
  const statefulSet = (): StatefulSet => ({
    metadata: { ...ROOT, uid: "set", resourceVersion: "3", labels: world.labels },
    spec: { replicas: 2, updateStrategy: { type: "OnDelete" } },
    status: { updateRevision: "new" },
  });
  const client = {
    get: async ({ kind }: { kind: string }) => {
      done.push(kind === "StatefulSet" ? "get" : "get config");
      return kind === "StatefulSet" ? statefulSet() : world.config;
    },
    async patch({ kind }: { kind: string }, _ref: unknown, { body }: { body: never }) {
      world.onPatch();
      const { metadata, status } = body as Pick<ShardingConfig, "metadata" | "status">;
      if (kind !== "ShardingConfig") throw new StatusError("Forbidden", `may not patch ${kind}`);
      if (status === undefined) {
        const text = metadata.annotations?.[ROLL_EXPECTED] as string | null | undefined;
        done.push(`record ${text ?? "none"} over ${metadata.resourceVersion}`);
        const { [ROLL_EXPECTED]: _, ...others } = world.config.metadata.annotations ?? {};
        const annotations = typeof text === "string" ? { ...others, [ROLL_EXPECTED]: text } : others;
        world.config = { ...world.config, metadata: { ...world.config.metadata, annotations } };
        return world.config;
      }
      world.onStatus();
      done.push(`status ${status?.rollout === null ? "none" : (status?.rollout?.waitingFor ?? "")}`);
      const rollout = { ...world.config.status?.rollout, ...status?.rollout } as NonNullable<ShardingConfig["status"]>["rollout"];
      world.config = { ...world.config, status: { placement, ...(status?.rollout === null ? {} : { rollout }) } };
      return world.config;
    },
    async createSubresource(_resource: unknown, { name }: { name: string }) {
      done.push(`evict ${name}`);
      return world.answer();
    },
  };
  const events = { event: (_object: unknown, _type: unknown, reason: string) => void done.push(`event ${reason}`) };
  const create = () =>
    createRolloutReconciler({
      client: client as never,
      evictor: createEvictor({
        client: client as never,
        pods: { get: (name) => world.pods.find(({ metadata }) => metadata.name === name) },
        events,
        isLeader: () => world.isLeading,
        clock,
        random: () => 1,
        log: createLogger({ name: "test", level: "silent" }),
      }),
      configs: {
        get: () => world.config,
        wrote: (config) => {
          world.config = config;
        },
      },
      statefulSets: { get: statefulSet },
      apps: { get: () => createShardingSource().appsOf([world.config])[0] },
      pods: { list: () => world.pods },
      registry: { facts: () => proxyFacts({ acknowledged: snapshot(table([subset("a")], {})) }) },
      events,
      clock,
    });
  let reconciler = create();
  return {
    world,
    clock,
    restart: () => {
      reconciler = create();
    },
    async run() {
      done.length = 0;
      const result = await reconciler.reconcile(ROOT, new AbortController().signal);
      return { result, done: [...done] };
    },
  };
}

const RECORD = '{"updateRevision":"new","podRevision":{"shop-0":"new","shop-1":"old"}}';

describe("the rollout reconciler", () => {
  it("stores the record over the root that it read, then the status, and only then evicts", async () => {
    const { run } = setUp();
    expect((await run()).done).toEqual([
      "get",
      `record ${RECORD} over 7`,
      "status Evicting",
      "event RolloutStarted",
      "event RolloutShard",
      "evict shop-0",
    ]);
  });
  it("evicts nothing if the root has changed meanwhile, and plans again", async () => {
    const { world, run } = setUp();
    world.onPatch = () => {
      throw new StatusError("Conflict", "changed");
    };
    const { result, done } = await run();
    expect([result, done]).toEqual([{ requeueAfterMs: 100 }, ["get"]]);
  });
  it("evicts nothing if the restart of a pod that lost namespaces has begun meanwhile, and plans again", async () => {
    const { world, run } = setUp();
    const restart = { subset: "a", pod: "shop-1", uid: "b", since: "2026-01-01T00:00:00Z", left: 1, reason: "Evicting" };
    world.onStatus = () => {
      world.config = { ...world.config, status: { restart } };
      throw new StatusError("Conflict", "changed");
    };
    const { result, done } = await run();
    expect([result, done]).toEqual([{ requeueAfterMs: 100 }, ["get", `record ${RECORD} over 7`, "get config"]]);
  });
  it("evicts nothing if it leads no more", async () => {
    const { world, run } = setUp();
    world.isLeading = false;
    expect((await run()).done).not.toContain("evict shop-0");
  });
  it("requests the same eviction after a crash, and tells nothing twice", async () => {
    const { run, restart } = setUp();
    await run();
    restart();
    expect((await run()).done).toEqual(["get", "evict shop-0"]);
  });
  it("waits after a refusal, says so in the status, and requests the eviction again", async () => {
    const { world, clock, run } = setUp();
    world.answer = () => {
      throw new StatusError("TooManyRequests", "the budget needs 2 healthy pods");
    };
    await run();
    const refused = await run();
    expect(refused.done).toEqual(["get", "status PodDisruptionBudget"]);
    expect(refused.result.requeueAfterMs).toBe(1_000);
    await clock.advance(1_000);
    expect((await run()).done).toContain("evict shop-0");
  });
  it("reads and writes nothing for a StatefulSet without the label", async () => {
    const { world, run } = setUp();
    world.labels = {};
    expect((await run()).done).toEqual([]);
  });
  it("removes its record and its status when the label is removed", async () => {
    const { world, run } = setUp();
    await run();
    world.labels = {};
    expect((await run()).done).toEqual(["get", "record none over 7", "status none"]);
    expect((await run()).done).toEqual([]);
  });
});
