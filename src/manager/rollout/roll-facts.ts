// The facts from which a rollout is planned, and its record: the revision that each pod has or will get. An
// annotation of the root stores it, so the manager needs no right to change a StatefulSet. Pure. Invariant:
// an entry becomes the new revision before the pod's eviction, and does not go back during the rollout.

import { z } from "zod";
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import { MAX_FAMILY_PODS, type ShardingStatus } from "../../api/sharding-config.ts";
import { parseJson } from "../../base/json.ts";
import { isControlledBy } from "../../kube/client/owner.ts";
import { type Pod, REVISION_LABEL, type StatefulSet } from "../../kube/client/resources.ts";
import { type FactsOf, type ProxyFacts, podKey } from "../../mesh/handover/proxy-facts.ts";
import type { App } from "../apps/app.ts";
import { isUnschedulable, readyCondition } from "../facts/app-pods.ts";
import type { Refusal } from "../restart/evictor.ts";
import { compareNames } from "../sharding/shards.ts";

export type RolloutStatus = NonNullable<ShardingStatus["rollout"]>;

export interface RollPod {
  readonly name: string;
  readonly uid: string;
  /** The shard of its ordinal; "" for the pods of no shard. */
  readonly shard: string;
  /** The shard whose rules its proxy has acknowledged last; undefined if there are none. */
  readonly enforcedShard: string | undefined;
  readonly revision: string | undefined;
  readonly isReady: boolean;
  /** Wall time in milliseconds; undefined if it is not ready. */
  readonly readySinceMs: number | undefined;
  readonly isTerminating: boolean;
  readonly isUnschedulable: boolean;
  readonly hasProxy: boolean;
  readonly isConnected: boolean;
  /** Its proxy enforces the newest snapshot. */
  readonly isAcknowledged: boolean;
  readonly isLeader: boolean;
}

export interface RolloutFacts {
  /** The value of the label `rolling`; undefined without it. */
  readonly rollingLabel: string | undefined;
  readonly isOnDelete: boolean;
  /** Undefined until the StatefulSet's controller has seen its newest spec. */
  readonly updateRevision: string | undefined;
  /** See {@link wantedPodNames}. */
  readonly wantedNames: readonly string[] | undefined;
  readonly record: RollRecord | undefined;
  /** In order; "" for the pods of no shard. */
  readonly shards: readonly string[];
  readonly canary: string | undefined;
  /** The shard of the pod with this name, which need not exist. */
  readonly shardOf: (podName: string) => string;
  readonly pods: readonly RollPod[];
  readonly hasLock: boolean;
  /** The fields of the root that are true and pause the rollout. */
  readonly pausedFields: readonly string[];
  readonly previous: RolloutStatus | undefined;
  /** A pod that lost namespaces is being evicted. */
  readonly isRestarting: boolean;
  readonly soakMs: number;
  /** The refusal of the last eviction of the pod with this uid, or a missing answer. */
  readonly refusalOf: (uid: string) => Refusal | undefined;
  readonly nowMs: number;
}

export function rollPods(
  { ref }: Pick<App, "ref">,
  shardOf: RolloutFacts["shardOf"],
  statefulSet: StatefulSet,
  pods: readonly Pod[],
  factsOf: FactsOf,
): RollPod[] {
  return pods
    .filter((pod) => isControlledBy(pod, statefulSet))
    .map((pod) => {
      const { namespace = "", name = "", uid = "", labels = {}, deletionTimestamp } = pod.metadata;
      const proxyFacts = factsOf(podKey({ namespace, name }));
      const readySinceMs = readySince(pod);
      return {
        name,
        uid,
        shard: shardOf(name),
        enforcedShard: proxyFacts?.acknowledged?.subset,
        revision: labels[REVISION_LABEL],
        isReady: readySinceMs !== undefined,
        readySinceMs,
        isTerminating: deletionTimestamp !== undefined,
        isUnschedulable: isUnschedulable(pod),
        hasProxy: labels[INJECTED_LABEL] === ref.name,
        isConnected: proxyFacts?.connected ?? false,
        isAcknowledged: isAcknowledged(proxyFacts),
        isLeader: proxyFacts?.leader ?? false,
      };
    });
}

/** The names of the pods that the StatefulSet asks for; undefined if these are more than shards can have. */
export function wantedPodNames({ metadata, spec }: StatefulSet): string[] | undefined {
  const { replicas = 1, ordinals } = spec ?? {};
  if (replicas > MAX_FAMILY_PODS) return undefined;
  return Array.from({ length: replicas }, (_, index) => `${metadata.name}-${(ordinals?.start ?? 0) + index}`);
}

// Every kubelet sets the transition time. Without it, the pod counts as ready since its creation.
function readySince(pod: Pod): number | undefined {
  const { metadata } = pod;
  const ready = readyCondition(pod);
  if (ready === undefined || metadata.deletionTimestamp !== undefined) return undefined;
  const ms = Date.parse(ready.lastTransitionTime ?? metadata.creationTimestamp ?? "");
  return Number.isNaN(ms) ? 0 : ms;
}

function isAcknowledged(proxyFacts: ProxyFacts | undefined): boolean {
  if (proxyFacts?.acknowledged === undefined || proxyFacts.outstanding !== undefined) return false;
  return proxyFacts.inDoubt.length === 0 && !proxyFacts.mayHoldMore;
}

export interface RollRecord {
  readonly updateRevision: string;
  readonly podRevision: Readonly<Record<string, string>>;
}

const schema = z.object({ updateRevision: z.string().min(1), podRevision: z.record(z.string(), z.string().min(1)) });

/** A text that cannot be read counts as none. Never throws. */
export function parseRecord(text: string | undefined): RollRecord | undefined {
  if (text === undefined) return undefined;
  try {
    return schema.safeParse(parseJson(text)).data;
  } catch {
    return undefined;
  }
}

export function formatRecord({ updateRevision, podRevision }: RollRecord): string {
  const entries = Object.entries(podRevision).sort(([a], [b]) => compareNames(a, b));
  return JSON.stringify({ updateRevision, podRevision: Object.fromEntries(entries) });
}

export function recordOf(
  previous: RollRecord | undefined,
  updateRevision: string,
  wanted: readonly string[],
  pods: readonly { readonly name: string; readonly revision: string | undefined }[],
): RollRecord {
  const isSame = previous?.updateRevision === updateRevision;
  const revisions = new Map(pods.map(({ name, revision }) => [name, revision]));
  const entries = wanted.flatMap((name): [string, string][] => {
    const before = previous?.podRevision[name];
    const current = revisions.get(name);
    const revision = isSame && before === updateRevision ? before : (current ?? before);
    return revision === undefined ? [] : [[name, revision]];
  });
  return { updateRevision, podRevision: Object.fromEntries(entries) };
}

/** The revision of a new pod. A pod without an entry gets that of the last pod, which is reached last. */
export function expectedRevision({ podRevision }: RollRecord, pod: string): string | undefined {
  const last = Object.keys(podRevision).sort(compareNames).at(-1);
  return podRevision[pod] ?? (last === undefined ? undefined : podRevision[last]);
}
