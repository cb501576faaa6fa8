// A root with one pod for each shard, the manager's two controllers that write the statuses of its family, and proxies that acknowledge
// when the test says so. It counts the status patches. The watches are never late.

import { ROUTES_FINALIZER } from "../../src/api/app-status.ts";
import { INJECTED_LABEL } from "../../src/api/injected-pod.ts";
import { SHARDING_CONFIGS } from "../../src/api/resources.ts";
import type { ShardingConfig } from "../../src/api/sharding-config.ts";
import { POD_NAME } from "../../src/api/sharding-keys.ts";
import { silentLogger } from "../../src/base/log.ts";
import type { Pod } from "../../src/kube/client/resources.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { createAppReconciler } from "../../src/manager/app-controller/reconciler.ts";
import { createApps } from "../../src/manager/apps/app.ts";
import { createLabelStates } from "../../src/manager/labels/label-state.ts";
import { createProxyRegistry } from "../../src/manager/server/proxy-registry.ts";
import { createShardingSource } from "../../src/manager/sharding/sharding-source.ts";
import { createShardsReconciler } from "../../src/manager/sharding/shards/add.ts";
import type { Informers } from "../../src/runtime/informers.ts";
import type { Reconciler } from "../../src/runtime/reconciler.ts";
import { createStore } from "../../src/runtime/store.ts";
import { compileHere } from "./compile.ts";
import { createFakeClock } from "./fake-clock.ts";
import { createFakeKubeClient } from "./fake-kube-client.ts";
import { NO_CLUSTERS } from "./no-clusters.ts";
import { noEvictor } from "./no-evictor.ts";
import { sampleShardingRoot } from "./sharding-config.ts";
import { registered } from "./updates.ts";

const FAMILY = { namespace: "ops", name: "shop" };
const PROXY = "ctrlmesh-proxy";

export type FamilyWorld = ReturnType<typeof createFamilyWorld>;

export function createFamilyWorld(shards: number, namespaceNames: readonly string[]) {
  const [clock, client] = [createFakeClock(), createFakeKubeClient()];
  let written: string[] = [];
  const patch: typeof client.patch = client.patch;
  client.patch = (resource, ref, change, options) => {
    if (options?.subresource === "status") written.push(ref.name);
    return patch(resource, ref, change, options);
  };
  const fail = (error: unknown) => {
    throw error;
  };
  const configs = createStore<ShardingConfig>(fail);
  const namespaces = createStore<KubeObject>(fail);
  const pods = new Map<string, Pod>();
  const registry = createProxyRegistry({ log: silentLogger() });
  const source = createShardingSource();
  const apps = createApps({ store: () => configs } as unknown as Informers, [source]);
  const common = { client, apps, clock, log: silentLogger() };
  const reconcilers: Reconciler[] = [
    createAppReconciler({
      ...common,
      source,
      store: configs,
      namespaces,
      labels: createLabelStates(new Map()),
      services: { list: () => undefined, forget: () => undefined },
      replicaSets: { list: () => undefined, forget: () => undefined },
      evictor: noEvictor,
      pods: { list: () => [...pods.values()], get: (name) => pods.get(name) },
      ...NO_CLUSTERS,
      past: { gone: () => [], goneAbroad: () => [], isStatusLate: () => false, mayHaveEarlierRoutes: () => false },
      registry,
      events: { event: () => undefined },
      compile: compileHere,
      onCompiled: () => undefined,
    }),
    createShardsReconciler({ ...common, configs }),
  ];
  const due = new Map<Reconciler, number>();
  const unanswered = new Map<string, () => void>();

  const catchUp = async () => configs.replace((await client.list(SHARDING_CONFIGS, { namespace: "ops" })).items);
  const takeWrites = () => client.calls.splice(0).filter(({ verb }) => !["get", "list"].includes(verb)).length;
  const reconcile = async (reconciler: Reconciler) => {
    due.delete(reconciler);
    const { requeueAfterMs } = await reconciler.reconcile(FAMILY, new AbortController().signal);
    if (requeueAfterMs !== undefined) due.set(reconciler, clock.monotonicMs() + requeueAfterMs);
    await catchUp();
  };

  const world = {
    clock,
    client,
    /** Reconciles until nothing more is written. Proxies do not answer meanwhile. */
    async turn() {
      for (let round = 0; round < 20; round++) {
        takeWrites();
        for (const reconciler of reconcilers) await reconcile(reconciler);
        if (takeWrites() === 0) return;
      }
      throw new Error(`still writes: ${written.join(", ")}`);
    },
    /** Time passes, and each controller reconciles when it asked to. */
    async pass(ms: number) {
      const end = clock.monotonicMs() + ms;
      for (;;) {
        const next = Math.min(...due.values());
        if (next > end) break;
        await clock.advance(Math.max(0, next - clock.monotonicMs()));
        for (const [reconciler, at] of [...due]) if (at <= clock.monotonicMs()) await reconcile(reconciler);
        await world.turn();
      }
      await clock.advance(end - clock.monotonicMs());
    },
    /** This many of the proxies with an update, or all, acknowledge it. */
    answer(count = unanswered.size) {
      for (const [name, acknowledge] of [...unanswered].slice(0, count)) {
        unanswered.delete(name);
        acknowledge();
      }
    },
    get unanswered() {
      return unanswered.size;
    },
    async settle() {
      await world.turn();
      for (let round = 0; unanswered.size > 0 && round < 20; round++) {
        world.answer();
        await world.turn();
      }
      await world.pass(120_000);
    },
    bear(...names: readonly string[]) {
      for (const name of names) namespaces.upsert({ metadata: { name, uid: `uid-${name}`, resourceVersion: "1" } });
    },
    /** The pod of the shard with this number, from 1. */
    putPod(number: number, isReady = true) {
      const name = `shop-operator-${number - 1}`;
      pods.set(name, podOf(name, isReady));
      const key = `ops/${name}` as const;
      if (registry.facts(key) !== undefined) return;
      const stream = {
        send: ({ nonce }: { readonly nonce: number }) =>
          void unanswered.set(name, () => registry.acked(key, stream, { type: "routes", nonce })),
        end: () => undefined,
      };
      registry.connected(key, registered(undefined, { uid: `uid-${name}` }), stream);
    },
    /** The StatefulSet is scaled to nothing. */
    removePods() {
      for (const name of pods.keys()) registry.forget(`ops/${name}`);
      pods.clear();
    },
    async place(active: number) {
      const list = Array.from({ length: active }, (_, at) => at + 1);
      const placement = { start: 0, shards: active, active: list };
      const old =
        client.read<ShardingConfig>(SHARDING_CONFIGS, FAMILY) ?? (sampleShardingRoot(ROOT) as unknown as ShardingConfig);
      const finalizers = [ROUTES_FINALIZER];
      const metadata = { ...old.metadata, generation: 1, finalizers };
      client.put(SHARDING_CONFIGS, { ...old, metadata, status: { ...old.status, placement } });
      await catchUp();
    },
    status: (name = "shop") => client.read<ShardingConfig>(SHARDING_CONFIGS, { namespace: "ops", name })?.status,
    /** The names of the objects of which the status was patched since the last call. */
    takePatches() {
      const taken = written;
      written = [];
      return taken;
    },
    async begin() {
      namespaces.replace([]);
      world.bear(...namespaceNames);
      await world.place(shards);
      for (let number = 1; number <= shards; number++) world.putPod(number);
      await world.settle();
      world.takePatches();
    },
  };
  return world;
}

const ROOT = { canary: undefined, auto: { everyShardReplicas: 1 } };

function podOf(name: string, isReady: boolean): Pod {
  return {
    metadata: {
      namespace: "ops",
      name,
      uid: `uid-${name}`,
      labels: { [POD_NAME]: name, [INJECTED_LABEL]: "shop" },
      ownerReferences: [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "shop-operator", uid: "s", controller: true }],
    },
    spec: { nodeName: "n", containers: [{ name: "operator" }], initContainers: [{ name: PROXY }] },
    status: {
      phase: "Running",
      conditions: [{ type: "Ready", status: isReady ? "True" : "False" }],
      initContainerStatuses: [{ name: PROXY, ready: true, started: true, restartCount: 0, state: { running: {} } }],
      containerStatuses: [{ name: "operator", ready: isReady, started: true, restartCount: 0, state: { running: {} } }],
    },
  } as unknown as Pod;
}
