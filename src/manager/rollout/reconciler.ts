// Rolls out the StatefulSet of a root: reads it, plans, stores the record and the status, and then evicts.
// Invariant: a pod is evicted only after its record is stored, over the root that the plan was made from.
import { SHARDING_CONFIGS } from "../../api/resources.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { canaryShardName, POD_NAME, ROLL_EXPECTED, ROLLING } from "../../api/sharding-keys.ts";
import type { Clock } from "../../base/clock.ts";
import { STATEFUL_SETS, type StatefulSet } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { isStatus } from "../../kube/status.ts";
import type { KubeObject } from "../../kube/types.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import type { EventRecorder } from "../../runtime/events.ts";
import type { Reconciler, Result } from "../../runtime/reconciler.ts";
import { writeStatus } from "../../runtime/status-writer.ts";
import type { Store } from "../../runtime/store.ts";
import { type App, type Apps, isLive } from "../apps/app.ts";
import type { PodLists } from "../facts/pod-watch.ts";
import { BELIEVED_MS, type Evictor, isEvicting } from "../restart/evictor.ts";
import type { ProxyRegistry } from "../server/proxy-registry.ts";
import { withBoundedTexts } from "../status/bounded-texts.ts";
import { planRollout, type RolloutStep, rolloutEvents } from "./plan-rollout.ts";
import { formatRecord, parseRecord, type RolloutFacts, rollPods, wantedPodNames } from "./roll-facts.ts";

interface RolloutReconcilerOptions {
  readonly client: Pick<KubeClient, "get" | "patch">;
  readonly configs: Pick<Store<ShardingConfig>, "get" | "wrote">;
  readonly statefulSets: Pick<Store<KubeObject>, "get">;
  readonly apps: Pick<Apps, "get">;
  readonly pods: Pick<PodLists, "list">;
  readonly registry: Pick<ProxyRegistry, "facts">;
  readonly events: Pick<EventRecorder, "event">;
  readonly evictor: Evictor;
  readonly clock: Pick<Clock, "now">;
}

/** Enough for the watch to bring the change of another writer. */
const AGAIN_MS = 100;

export function createRolloutReconciler(options: RolloutReconcilerOptions): Reconciler {
  const { client, configs, apps, pods, registry, events, evictor, clock } = options;

  function factsOf(app: App, config: ShardingConfig, statefulSet: StatefulSet): RolloutFacts | undefined {
    const podsOfNamespace = pods.list(app.ref.namespace);
    const root = config.spec.root;
    // The list of the pods queues the root again.
    if (podsOfNamespace === undefined || app.spec === undefined || root === undefined) return undefined;
    const { metadata, spec, status } = statefulSet;
    const shardOf = (name: string) => app.pods.subsetOf({ [POD_NAME]: name });
    return {
      rollingLabel: isLive(app) ? metadata.labels?.[ROLLING] : undefined,
      isOnDelete: spec?.updateStrategy?.type === "OnDelete",
      updateRevision: (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0) ? status?.updateRevision : undefined,
      wantedNames: wantedPodNames(statefulSet),
      record: parseRecord(config.metadata.annotations?.[ROLL_EXPECTED]),
      shards: [...app.spec.subsets.filter((shard) => shard !== DEFAULT_SUBSET), DEFAULT_SUBSET],
      canary: root.canary && canaryShardName(root.prefix),
      shardOf,
      pods: rollPods(app, shardOf, statefulSet, podsOfNamespace, registry.facts),
      hasLock: app.spec.lockName !== "",
      pausedFields: [
        ...(app.spec.isPaused ? [app.words.pausedField] : []),
        ...(root.rollout?.paused === true ? ["spec.root.rollout.paused"] : []),
      ],
      previous: config.status?.rollout,
      isRestarting: isEvicting(config.status, "restart"),
      soakMs: (root.rollout?.soakSeconds ?? 0) * 1000,
      refusalOf: (uid) => evictor.attemptOn(app.ref, uid, "rollout")?.refusal,
      nowMs: clock.now(),
    };
  }

  /** Returns the root with the record; undefined if the root has changed since it was read. */
  async function storeRecord(config: ShardingConfig, step: RolloutStep, signal: AbortSignal) {
    const { namespace, name = "", uid, resourceVersion, annotations } = config.metadata;
    const record = step.kind === "off" ? undefined : step.record;
    const text = record === undefined ? undefined : formatRecord(record);
    if (text === annotations?.[ROLL_EXPECTED]) return config;
    const body = { metadata: { uid, resourceVersion, annotations: { [ROLL_EXPECTED]: text ?? null } } };
    try {
      return await client.patch(SHARDING_CONFIGS, { namespace, name }, { type: "merge", body }, { signal });
    } catch (error) {
      if (isStatus(error, "Conflict", "NotFound")) return undefined;
      throw error;
    }
  }

  /** False, without a write, if the step evicts a pod while a restart evicts one. */
  async function storeStatus(config: ShardingConfig, step: RolloutStep, signal: AbortSignal): Promise<boolean> {
    let isFree = true;
    const rollout = step.kind === "off" ? undefined : withBoundedTexts(step.status);
    const desired = ({ status: current = {} }: ShardingConfig) => {
      isFree = !(step.kind === "evict" && isEvicting(current, "restart"));
      const { rollout: _, ...rest } = current;
      if (!isFree) return current;
      return rollout === undefined ? rest : { ...rest, rollout };
    };
    const after = await writeStatus(client, SHARDING_CONFIGS, config, desired, { signal });
    if (after !== undefined) configs.wrote(after);
    return isFree;
  }

  async function carryOut({ ref }: App, source: ShardingConfig, step: RolloutStep, signal: AbortSignal): Promise<Result> {
    if (step.kind === "wait" && step.recheckMs !== undefined) return { requeueAfterMs: Math.max(1, step.recheckMs) };
    if (step.kind !== "evict") return {};
    const attempt = await evictor.evict({ app: ref, by: "rollout", source, pod: step.pod }, signal);
    if (attempt === undefined) return {};
    return { requeueAfterMs: attempt.refusal === undefined ? BELIEVED_MS : AGAIN_MS };
  }

  async function rollOut(app: App, config: ShardingConfig, statefulSet: StatefulSet, signal: AbortSignal): Promise<Result> {
    const facts = factsOf(app, config, statefulSet);
    if (facts === undefined) return {};
    const step = planRollout(facts);
    const recorded = await storeRecord(config, step, signal);
    if (recorded === undefined) return { requeueAfterMs: AGAIN_MS };
    const before = config.status?.rollout;
    if (!(await storeStatus(recorded, step, signal))) return { requeueAfterMs: AGAIN_MS };
    for (const { type, reason, message } of rolloutEvents(before, step)) events.event(config, type, reason, message);
    return carryOut(app, config, step, signal);
  }

  return {
    async reconcile(request, signal) {
      const { name, namespace } = request;
      const config = configs.get(name, namespace);
      const target = config?.spec?.root?.targetStatefulSet;
      const app = apps.get(name, namespace);
      if (config === undefined || target === undefined || app === undefined) return {};
      const listed = options.statefulSets.get(target, namespace);
      const hasRecord = config.metadata.annotations?.[ROLL_EXPECTED] !== undefined;
      const isRolling = listed?.metadata.labels?.[ROLLING] !== undefined;
      if (listed === undefined || !(isRolling || hasRecord)) {
        if (config.status?.rollout !== undefined) await storeStatus(config, { kind: "off" }, signal);
        return {};
      }
      if (app.ref.kind !== SHARDING_CONFIGS.kind || app.spec?.waitsFor !== undefined) return {};
      try {
        const statefulSet = await client.get(STATEFUL_SETS, { namespace, name: target }, { signal });
        return await rollOut(app, config, statefulSet, signal);
      } catch (error) {
        if (isStatus(error, "NotFound")) return {};
        throw error;
      }
    },
  };
}
