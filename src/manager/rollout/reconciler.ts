// Rolls out the StatefulSet of a root: reads it, plans, stores the record and the status, and then evicts.
// Invariant: a pod is evicted only by the leader and only after its record is stored in the root, over the
// root that the plan was made from. Level-based: the memories of this module save only a repeated eviction
// and repeated Events.
import { SHARDING_CONFIGS } from "../../api/resources.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { ROLL_EXPECTED, ROLLING } from "../../api/sharding-keys.ts";
import { type Clock, type Random, systemRandom } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { STATEFUL_SETS, type StatefulSet } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { isStatus } from "../../kube/status.ts";
import type { KubeObject } from "../../kube/types.ts";
import { DEFAULT_SUBSET } from "../../route/table.ts";
import type { EventRecorder } from "../../runtime/events.ts";
import { formatRequest, type Reconciler, type Request, type Result } from "../../runtime/reconciler.ts";
import { writeStatus } from "../../runtime/status-writer.ts";
import type { Store } from "../../runtime/store.ts";
import { type App, type Apps, isLive } from "../apps/app.ts";
import type { PodLists } from "../facts/pod-watch.ts";
import { evict } from "../restart/evict.ts";
import { refusalBy } from "../restart/refusal.ts";
import type { Refusal } from "../restart/restart-record.ts";
import type { ProxyRegistry } from "../server/proxy-registry.ts";
import { withBoundedTexts } from "../status/bounded-texts.ts";
import { planRollout, type RolloutStep } from "./plan-rollout.ts";
import type { RolloutFacts, RolloutStatus, RollPod } from "./roll-facts.ts";
import { rollPods, wantedPods } from "./roll-pods.ts";
import { formatRecord, parseRecord } from "./roll-record.ts";
import { rolloutEvents } from "./rollout-events.ts";

export interface RolloutReconcilerOptions {
  readonly client: Pick<KubeClient, "get" | "patch" | "createSubresource">;
  readonly configs: Pick<Store<ShardingConfig>, "get">;
  /** Their metadata. */
  readonly statefulSets: Pick<Store<KubeObject>, "get">;
  readonly apps: Pick<Apps, "get">;
  readonly pods: Pick<PodLists, "list">;
  readonly registry: Pick<ProxyRegistry, "facts">;
  readonly events: Pick<EventRecorder, "event">;
  readonly isLeader: () => boolean;
  readonly clock: Clock;
  readonly random?: Random;
  readonly log: Logger;
}

interface Memory {
  /** The refusal of the last eviction. */
  refused?: { readonly uid: string; readonly refusal: Refusal; readonly attempts: number };
  /** The last written status, which the watch may not have brought yet. */
  shown?: RolloutStatus | undefined;
}

const FIELD_MANAGER = "ctrlmesh-manager";
/** By then the watch has brought what another writer has changed. */
const AGAIN_MS = 100;
/** If the watch does not show in this time that an evicted pod ends, its eviction is requested again. */
const EVICTED_MS = 10_000;

export function createRolloutReconciler(options: RolloutReconcilerOptions): Reconciler {
  const { client, configs, apps, pods, registry, events, isLeader, clock, random = systemRandom, log } = options;
  const memories = new Map<string, Memory>();
  const memoryOf = (request: Request): Memory => {
    const memory = memories.get(formatRequest(request)) ?? {};
    memories.set(formatRequest(request), memory);
    return memory;
  };

  function factsOf(app: App, config: ShardingConfig, statefulSet: StatefulSet, memory: Memory): RolloutFacts | undefined {
    const known = pods.list(app.ref.namespace);
    const root = config.spec.root;
    // The list of the pods queues the root again.
    if (known === undefined || app.spec === undefined || root === undefined) return undefined;
    const { metadata, spec, status } = statefulSet;
    const { refused } = memory;
    return {
      rolling: isLive(app) ? metadata.labels?.[ROLLING] : undefined,
      isOnDelete: spec?.updateStrategy?.type === "OnDelete",
      updateRevision: (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0) ? status?.updateRevision : undefined,
      wanted: wantedPods(statefulSet),
      record: parseRecord(config.metadata.annotations?.[ROLL_EXPECTED]),
      shards: [...app.spec.subsets.filter((shard) => shard !== DEFAULT_SUBSET), DEFAULT_SUBSET],
      pods: rollPods(app, statefulSet, known, registry.facts),
      hasLock: app.spec.lockName !== "",
      isPaused: app.spec.isPaused || root.rollout?.paused === true,
      previous: memory.shown ?? config.status?.rollout,
      isRestarting: config.status?.restart?.reason === "Evicting",
      soakMs: (root.rollout?.soakSeconds ?? 0) * 1000,
      refusalOf: (uid) => (refused?.uid === uid ? refused.refusal : undefined),
      nowMs: clock.now(),
    };
  }

  /** The root with the record; undefined if the root has changed since it was read. */
  async function storeRecord(config: ShardingConfig, step: RolloutStep, signal: AbortSignal) {
    const { namespace, name = "", uid, resourceVersion, annotations } = config.metadata;
    const record = step.kind === "off" ? undefined : step.record;
    const text = record === undefined ? undefined : formatRecord(record);
    if (text === annotations?.[ROLL_EXPECTED]) return config;
    const body = { metadata: { uid, resourceVersion, annotations: { [ROLL_EXPECTED]: text ?? null } } };
    const call = { signal, fieldManager: FIELD_MANAGER };
    try {
      return await client.patch(SHARDING_CONFIGS, { namespace, name }, { type: "merge", body }, call);
    } catch (error) {
      if (isStatus(error, "Conflict", "NotFound")) return undefined;
      throw error;
    }
  }

  /**
   * False, without a write, if the status says that a restart evicts a pod, and this one would say that the
   * rollout evicts one too.
   */
  async function storeStatus(
    config: ShardingConfig,
    status: RolloutStatus | undefined,
    isEvicting: boolean,
    signal: AbortSignal,
  ) {
    let isFree = true;
    const rollout = status && withBoundedTexts(status);
    const desired = ({ status: current = {} }: ShardingConfig) => {
      isFree = !(isEvicting && current.restart?.reason === "Evicting");
      const { rollout: _, ...rest } = current;
      if (!isFree) return current;
      return rollout === undefined ? rest : { ...rest, rollout };
    };
    await writeStatus(client, SHARDING_CONFIGS, config, desired, { signal, fieldManager: FIELD_MANAGER });
    return isFree;
  }

  async function ask(request: Request, { name, uid }: RollPod, signal: AbortSignal): Promise<Result> {
    // The process may have been stopped since the record was written, and may have lost the lease meanwhile.
    if (!isLeader()) return {};
    const key = formatRequest(request);
    const memory = memoryOf(request);
    const attempts = memory.refused?.uid === uid ? memory.refused.attempts : 0;
    const eviction = await evict(client, { namespace: request.namespace, name, uid }, signal);
    const refusal = refusalBy(eviction, attempts, clock.now(), random);
    if (refusal === undefined) {
      delete memory.refused;
      log.info({ root: key, pod: name, eviction: eviction.kind }, "pod evicted for the rollout");
      return { requeueAfterMs: EVICTED_MS };
    }
    memory.refused = { uid, refusal, attempts: attempts + 1 };
    if (attempts === 0) log.warn({ root: key, pod: name, reason: refusal.reason, message: refusal.message }, "eviction refused");
    return { requeueAfterMs: AGAIN_MS };
  }

  async function rollOut(request: Request, app: App, config: ShardingConfig, statefulSet: StatefulSet, signal: AbortSignal) {
    const memory = memoryOf(request);
    const facts = factsOf(app, config, statefulSet, memory);
    if (facts === undefined) return {};
    const step = planRollout(facts);
    const recorded = await storeRecord(config, step, signal);
    if (recorded === undefined) return { requeueAfterMs: AGAIN_MS };
    const before = memory.shown ?? config.status?.rollout;
    const status = step.kind === "off" ? undefined : step.status;
    if (!(await storeStatus(recorded, status, step.kind === "evict", signal))) return { requeueAfterMs: AGAIN_MS };
    memory.shown = status;
    for (const { type, reason, message } of rolloutEvents(before, step)) events.event(config, type, reason, message);
    if (step.kind === "evict") return ask(request, step.pod, signal);
    return step.kind === "wait" && step.recheckMs !== undefined ? { requeueAfterMs: Math.max(1, step.recheckMs) } : {};
  }

  return {
    async reconcile(request, signal) {
      const config = configs.get(request.name, request.namespace);
      const target = config?.spec?.root?.targetStatefulSet;
      const app = apps.get(request.name, request.namespace);
      if (config === undefined || target === undefined || app === undefined) {
        memories.delete(formatRequest(request));
        return {};
      }
      const seen = options.statefulSets.get(target, request.namespace);
      const hasRecord = config.metadata.annotations?.[ROLL_EXPECTED] !== undefined;
      const isConcerned = seen !== undefined && (seen.metadata.labels?.[ROLLING] !== undefined || hasRecord);
      if (!isConcerned) {
        memories.delete(formatRequest(request));
        if (config.status?.rollout !== undefined) await storeStatus(config, undefined, false, signal);
        return {};
      }
      if (app.ref.kind !== SHARDING_CONFIGS.kind || app.spec?.waitsFor !== undefined) return {};
      try {
        const statefulSet = await client.get(STATEFUL_SETS, { namespace: request.namespace, name: target }, { signal });
        return await rollOut(request, app, config, statefulSet, signal);
      } catch (error) {
        if (isStatus(error, "NotFound")) return {};
        throw error;
      }
    },
  };
}
