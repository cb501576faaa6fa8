// What is special about an app that several objects form.
import { expect, it } from "vitest";
import { compileHere } from "../../../test/support/compile.ts";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { NO_CLUSTERS } from "../../../test/support/no-clusters.ts";
import { noEvictor } from "../../../test/support/no-evictor.ts";
import { sampleShardingConfig } from "../../../test/support/sharding-config.ts";
import { ROUTES_FINALIZER } from "../../api/app-status.ts";
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import { SHARDING_CONFIGS } from "../../api/resources.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { silentLogger } from "../../base/log.ts";
import type { Pod } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { Informers } from "../../runtime/informers.ts";
import { createStore } from "../../runtime/store.ts";
import { createApps } from "../apps/app.ts";
import { createLabelStates } from "../labels/label-state.ts";
import { createProxyRegistry } from "../server/proxy-registry.ts";
import { createShardingSource } from "../sharding/sharding-source.ts";
import { createAppReconciler } from "./reconciler.ts";

const { signal } = new AbortController();
const FAMILY = { namespace: "ops", name: "shop-lock" };
const DELETED = { deletionTimestamp: "2026-01-01T00:00:00Z" };
const HELD = { finalizers: [ROUTES_FINALIZER] };
/** On a node, and its status may be late: an earlier leader may have served its proxy just before. */
const late: Pod = {
  metadata: { namespace: "ops", name: "p", uid: "uid-p", labels: { shard: "b", [INJECTED_LABEL]: "shop-lock" } },
  spec: { nodeName: "n", containers: [{ name: "operator" }], initContainers: [{ name: "ctrlmesh-proxy" }] },
  status: { phase: "Pending" },
};

interface Given {
  readonly metadata?: object;
  readonly status?: object;
  readonly spec?: Readonly<Record<string, unknown>>;
}

/** A family of these configs, and what is left of it after one reconcile. */
async function reconciled(given: Readonly<Record<string, Given>>, pods: readonly Pod[] = []) {
  const [clock, client] = [createFakeClock(), createFakeKubeClient()];
  const configs = createStore<ShardingConfig>((error) => {
    throw error;
  });
  const objects = Object.entries(given).map(([name, { metadata = {}, status, spec = {} }]) => {
    const object = sampleShardingConfig({ selector: { matchLabels: { shard: name } }, ...spec });
    return client.put(SHARDING_CONFIGS, {
      ...object,
      ...(status === undefined ? {} : { status }),
      metadata: { namespace: "ops", name, generation: 1, ...metadata },
    } as unknown as ShardingConfig);
  });
  configs.replace(objects);
  const namespaces = createStore<KubeObject>(() => undefined);
  namespaces.replace([{ metadata: { name: "east-a", uid: "n1", resourceVersion: "1" } }]);
  const source = createShardingSource();
  const reconciler = createAppReconciler({
    source,
    client,
    store: configs,
    namespaces,
    clock,
    labels: createLabelStates(new Map()),
    services: { list: () => undefined, forget: () => undefined },
    replicaSets: { list: () => undefined, forget: () => undefined },
    evictor: noEvictor,
    apps: createApps({ store: () => configs } as unknown as Informers, [source]),
    pods: { list: () => pods, get: () => pods[0] },
    ...NO_CLUSTERS,
    past: { gone: () => [], goneAbroad: () => [], isStatusLate: () => true, mayHaveEarlierRoutes: () => true },
    registry: createProxyRegistry({ log: silentLogger() }),
    events: { event: () => undefined },
    compile: compileHere,
    onCompiled: () => undefined,
    log: silentLogger(),
  });
  await reconciler.reconcile(FAMILY, signal);
  const read = (name: string) => client.read<ShardingConfig>(SHARDING_CONFIGS, { namespace: "ops", name });
  const finalizers = Object.fromEntries(Object.keys(given).map((name) => [name, read(name)?.metadata.finalizers]));
  return { finalizers, status: (name: string) => read(name)?.status };
}

const converged = (status: ShardingConfig["status"]) => status?.conditions?.find(({ type }) => type === "Converged");

it("a config that joins a family in front does not make the family new: pods with routes of before still count", async () => {
  const { status } = await reconciled({ a: {}, b: { metadata: HELD, status: { routeVersion: 7 } } }, [late]);
  expect(converged(status("a"))?.reason).toBe("Rebuilding");
  expect(status("a")?.routeVersion).toBeGreaterThanOrEqual(7);
});

it("a new family does not wait for a pod that got no routes", async () => {
  const { status, finalizers } = await reconciled({ a: {}, b: {} }, [late]);
  expect(converged(status("a"))?.reason).not.toBe("Rebuilding");
  expect(finalizers).toEqual({ a: [ROUTES_FINALIZER], b: [ROUTES_FINALIZER] });
});

it("a deleted config is let go when the others hold the family, and the first of them gets the status", async () => {
  const { finalizers, status } = await reconciled({ a: { metadata: { ...HELD, ...DELETED } }, b: {} });
  expect(finalizers).toEqual({ a: undefined, b: [ROUTES_FINALIZER] });
  expect(status("b")).toMatchObject({ family: "shop-lock", shard: "b" });
});

it("a deleted config of a refused family is let go as well, if another one holds the family", async () => {
  const refused = { spec: { onLoss: "Nothing" } };
  const { finalizers, status } = await reconciled({
    a: { metadata: { ...HELD, ...DELETED } },
    b: { ...refused, metadata: HELD },
  });
  expect(finalizers).toEqual({ a: undefined, b: [ROUTES_FINALIZER] });
  expect(status("b")?.conditions?.find(({ type }) => type === "Accepted")).toMatchObject({ status: "False" });
});

it("a deleted config of a refused family stays if nothing else would take the routes back from the pods", async () => {
  const refused = { spec: { onLoss: "Nothing" } };
  const { finalizers } = await reconciled({ a: { metadata: { ...HELD, ...DELETED } }, b: refused });
  expect(finalizers).toEqual({ a: [ROUTES_FINALIZER], b: undefined });
});

it("a deleted family lets all its configs go, also if the first one has only the finalizer of somebody else", async () => {
  const foreign = { finalizers: ["example.com/mine"], ...DELETED };
  const { finalizers } = await reconciled({ a: { metadata: foreign }, b: { metadata: { ...HELD, ...DELETED } } });
  expect(finalizers).toEqual({ a: ["example.com/mine"], b: undefined });
});
