// A StatefulSet that shards itself, for tests on the real control plane: its root ShardingConfig and namespaces, and who may write where.
import { expect } from "vitest";
import { SHARDING_CONFIGS } from "../../../src/api/resources.ts";
import type { ShardingConfig } from "../../../src/api/sharding-config.ts";
import { CONFIG_MAPS } from "../../../src/kube/client/resources.ts";
import { shardPlacer } from "../../../src/manager/sharding/children.ts";
import { storedPlacement } from "../../../src/manager/sharding/stored-placement.ts";
import { checkOwnership, violationText } from "../../chaos/ownership-check.ts";
import { eventually } from "../eventually.ts";
import { injectedWorkload } from "../injected-workload.ts";
import { startKube } from "../kube.ts";
import { startMesh } from "../mesh.ts";
import { startPodRunner } from "../pod-runner.ts";
import { familyRoot } from "../sharding-config.ts";

export const NAMESPACE = "foo-system";
export const ROOT = { namespace: NAMESPACE, name: "foo-operator" };
export const TEAMS = Array.from({ length: 24 }, (_, index) => `team-${String(index).padStart(2, "0")}`);
export const CANARY_TEAM = "team-07";

// As in KusionStack's own sample, the selector names one pod. It leaves out none.
const selector = { matchExpressions: [{ key: "statefulset.kubernetes.io/pod-name", operator: "In", values: ["foo-0"] }] };
/** The root, by its YAML. @param more fields of `spec.root` */
export const root = (more: object = {}) => {
  const { spec, ...rest } = familyRoot(ROOT, {
    statefulSet: "foo",
    canary: { replicas: 1, inNamespaces: [CANARY_TEAM] },
    auto: { everyShardReplicas: 1, graceSeconds: 3600, maxMovedPercentPerHour: 10_000 },
    resources: [
      ["demo.ctrlmesh.io", "foos"],
      ["", "configmaps"],
    ],
    ...more,
  });
  return JSON.stringify({ ...rest, spec: { ...spec, selector } });
};

export const shardOfPod = (pod: string) => (pod === "foo-0" ? "foo-0-canary" : `foo-${pod.slice("foo-".length)}-normal`);
export const condition = ({ status }: ShardingConfig, type: string) => status?.conditions?.find((each) => each.type === type);

export type ShardedWorld = Awaited<ReturnType<typeof startShardedWorld>>;

/** Four pods, and so four shards, which divide the namespaces. */
export async function startShardedWorld() {
  const kube = await startKube({ controllerManager: true });
  const mesh = await startMesh({ kube });
  for (const name of TEAMS) {
    await mesh.createNamespace(name);
    await mesh.createFoo(name, "one", "first");
    await mesh.client.create(CONFIG_MAPS, { metadata: { namespace: name, name: "load" } });
  }
  await mesh.apply(root());
  const options = { kube, client: mesh.client, namespace: NAMESPACE, lockName: "foo-operator" };
  const runner = startPodRunner({ ...options, manager: String(mesh.manager.ready.grpc) });

  const scale = (replicas: number) => mesh.apply(injectedWorkload({ kind: "StatefulSet", name: "foo", replicas, version: "v1" }));
  const config = (name: string = ROOT.name) => mesh.client.get(SHARDING_CONFIGS, { namespace: NAMESPACE, name });
  const configs = async () =>
    (await mesh.client.list(SHARDING_CONFIGS, { namespace: NAMESPACE })).items.map(({ metadata }) => metadata.name ?? "").sort();
  const ownedBy = async () =>
    Object.fromEntries(
      ((await config()).status?.subsets ?? []).flatMap(({ name, namespaces }) =>
        name === "default" ? [] : [[name, namespaces]],
      ),
    );
  const untilShards = (shards: number) =>
    eventually(async () => {
      const now = await config();
      expect(now.status?.root?.childShardingConfigs).toHaveLength(shards);
      expect(condition(now, "Converged")).toMatchObject({ status: "True", observedGeneration: now.metadata.generation });
      expect(Math.min(...Object.values(await ownedBy()))).toBeGreaterThan(0);
      expect(now.status?.namespaces?.moving).toBe(0);
    }, 60_000);
  /** The shards that wrote Foos of a namespace, in the order of their writes; a shard that writes again is listed again. */
  const writersOf = (namespace: string) =>
    mesh
      .podWrites()
      .filter((write) => write.namespace === namespace && write.resource === "foos/status" && write.code < 300)
      .map(({ pod }) => shardOfPod(pod))
      .filter((shard, index, all) => shard !== all[index - 1]);
  /** Who may write in a namespace, and since when at the earliest. */
  const timeline: { readonly sinceMs: number; readonly ownerOf: (namespace: string) => string }[] = [];
  const ownersNow = async () => {
    const { spec, ...rest } = await config();
    const placement = storedPlacement(rest);
    if (spec.root === undefined || placement === undefined) throw new Error("the root has no placement");
    return shardPlacer(spec.root, placement);
  };
  const placementText = async () => {
    const { spec: _, ...rest } = await config();
    return JSON.stringify(storedPlacement(rest));
  };
  /** Calls `act` while namespaces move: no shard that may lose some of them or gain some answers meanwhile. */
  const whileMoving = async (change: () => Promise<unknown>, act: () => Promise<void>) => {
    // Which of them it is depends on the placements before.
    const proxies = ["foo-1", "foo-2", "foo-3"].flatMap((name) => runner.pods.get(name)?.processes.proxy ?? []);
    for (const proxy of proxies) proxy.kill("SIGSTOP");
    const before = await placementText();
    await change();
    await eventually(async () => expect(await placementText()).not.toBe(before), 60_000);
    // Granted at once if the losing pods have ended by then, and on a busy machine over before a status with the handover is written.
    await eventually(async () => expect((await config()).status?.handover).toBeDefined(), 10_000).catch(() => undefined);
    await act();
    for (const proxy of proxies) proxy.kill("SIGCONT");
  };
  /** @param midway called while namespaces move */
  const scaleTo = async (replicas: number, midway?: () => Promise<void>) => {
    const sinceMs = Date.now();
    if (midway === undefined) await scale(replicas);
    else await whileMoving(() => scale(replicas), midway);
    await untilShards(replicas);
    timeline.push({ sinceMs, ownerOf: await ownersNow() });
  };
  /** The writes of two shards in one namespace, by the audit log. */
  const twoWriters = () => {
    const { violations, checked } = checkOwnership({
      writes: mesh.podWrites(),
      subsetOf: shardOfPod,
      placeOf: ({ namespace }) => (TEAMS.includes(namespace) ? namespace : undefined),
      ownersOf: (namespace) => timeline.map(({ sinceMs, ownerOf }) => ({ sinceMs, subset: ownerOf(namespace) })),
    });
    expect(checked).toBeGreaterThan(TEAMS.length);
    return violations.map(violationText);
  };

  const killManager = async () => {
    await mesh.killManager();
    await mesh.startManager();
  };

  await scale(4);
  await untilShards(4);
  timeline.push({ sinceMs: 0, ownerOf: await ownersNow() });
  return {
    kube,
    mesh,
    runner,
    scale,
    config,
    configs,
    untilShards,
    writersOf,
    timeline,
    ownersNow,
    whileMoving,
    scaleTo,
    twoWriters,
    killManager,
    async stop() {
      await runner.stop();
      await mesh.stop();
      await kube.stop();
    },
  };
}
