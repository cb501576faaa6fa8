// Plans the rollout of a root's StatefulSet, level-based: the pod to evict next, or the reason to wait. Pure.
// Invariants: one pod at a time, shard by shard, and in a shard the leader last. Pods of later shards, or of
// those that are not rolled out, block nothing. The progress follows from the pods, so neither a restart of the manager nor another revision midway needs state.
import { MAX_FAMILY_PODS } from "../../api/sharding-config.ts";
import { subsetDisplayName } from "../../mesh/ownership/words.ts";
import type { EventType } from "../../runtime/events.ts";
import { compareNames } from "../sharding/shards.ts";
import { type RolloutFacts, type RolloutStatus, type RollPod, type RollRecord, recordOf } from "./roll-facts.ts";
import { type Blocker, rolloutBlocker } from "./rollout-blocker.ts";
import { selectShards, unknownPartText } from "./select-shards.ts";

/** Its record and its status are stored before it is carried out. */
export type RolloutStep =
  /** Nothing is rolled out, and nothing is stored. */
  | { readonly kind: "off" }
  /** @param recheckMs the time until the next plan; absent if a watch shows the end of the wait */
  | {
      readonly kind: "wait";
      readonly record: RollRecord | undefined;
      readonly status: RolloutStatus;
      readonly recheckMs?: number | undefined;
    }
  | {
      readonly kind: "evict";
      readonly record: RollRecord;
      readonly status: RolloutStatus;
      readonly pod: RollPod;
      /** It is the first pod of its shard. */
      readonly isFirst: boolean;
    }
  | { readonly kind: "done"; readonly record: RollRecord; readonly status: RolloutStatus };

export function planRollout(facts: RolloutFacts): RolloutStep {
  const { rollingLabel, updateRevision, record: stored, wantedNames } = facts;
  if (rollingLabel === undefined) return { kind: "off" };
  const waitFor = (waitingFor: string, message: string, status: Partial<RolloutStatus> = {}) =>
    ({ kind: "wait", record: stored, status: { ...status, done: 0, total: 0, waitingFor, message } }) as const;
  if (!facts.isOnDelete) {
    const cause = "the StatefulSet restarts its pods itself, by their numbers and not by shards";
    return { ...waitFor("NotOnDelete", `${cause}: set spec.updateStrategy.type to OnDelete`), record: undefined };
  }
  if (updateRevision === undefined) {
    return waitFor("NotObserved", "the controller of the StatefulSet has not seen its newest spec yet");
  }
  if (wantedNames === undefined) {
    const bound = `${MAX_FAMILY_PODS}, the most pods that shards can have`;
    return waitFor("TooManyPods", `spec.replicas of the StatefulSet is more than ${bound}: scale it down`);
  }
  const record = recordOf(stored, updateRevision, wantedNames, facts.pods);
  const selection = selectShards(rollingLabel, facts.shards);
  if (selection.unknownPart !== undefined) {
    return {
      ...waitFor("UnknownShard", unknownPartText(selection.unknownPart, facts.shards), { revision: updateRevision }),
      record,
    };
  }
  return planShards(facts, record, wantedNames, selection.shards);
}

function planShards(facts: RolloutFacts, record: RollRecord, names: readonly string[], shards: readonly string[]): RolloutStep {
  const { updateRevision: revision } = record;
  const nameSet = new Set(names);
  const wantedPods = facts.pods.filter((pod) => nameSet.has(pod.name));
  const present = new Set(wantedPods.map(({ name }) => name));
  const selected = wantedPods.filter(({ shard }) => shards.includes(shard));
  const rolled = selected.filter((pod) => pod.revision === revision);
  const left = selected.filter((pod) => pod.revision !== revision);
  const missing = names.filter((name) => !present.has(name) && shards.includes(facts.shardOf(name)));
  const isAsked = ({ name }: RollPod) => record.podRevision[name] === revision;
  // Nobody waits for the replacement of a pod that does not run anyway. But the canary always comes first.
  const isPutOff = ({ isUnschedulable, shard }: RollPod) => isUnschedulable && shard !== facts.canary;
  const [next] = left.toSorted(
    (a, b) =>
      Number(isAsked(b)) - Number(isAsked(a)) ||
      Number(isPutOff(a)) - Number(isPutOff(b)) ||
      shards.indexOf(a.shard) - shards.indexOf(b.shard) ||
      Number(a.isLeader) - Number(b.isLeader) ||
      Number(a.isReady) - Number(b.isReady) ||
      compareNames(a.name, b.name),
  );
  const counts = {
    revision,
    done: rolled.filter(({ isReady, isTerminating }) => isReady && !isTerminating).length,
    total: selected.length + missing.length,
  };
  const turn = { next, isAsked: next !== undefined && isAsked(next), rolled, left, missing, shards };
  // A pod that is not ready, or is created, after the end of a rollout does not belong to it.
  const isOver = next === undefined && !isGoingOn(facts.previous, revision);
  const blocker = isOver ? undefined : rolloutBlocker(facts, turn);
  if (blocker !== undefined) {
    const { reason, message, recheckMs } = blocker;
    const status = { ...counts, ...placeOf(blocker, next), waitingFor: reason, message };
    return { kind: "wait", record, status, recheckMs };
  }
  if (next === undefined) {
    const message = `no pod has another revision than ${revision}`;
    return { kind: "done", record, status: { ...counts, message } };
  }
  // While a refused eviction is requested again, the status keeps the refusal.
  const { reason, message } = facts.refusalOf(next.uid) ?? {
    reason: "Evicting",
    message: `pod ${next.name} is evicted, to get revision ${revision}`,
  };
  return {
    kind: "evict",
    record: { ...record, podRevision: { ...record.podRevision, [next.name]: revision } },
    status: { ...counts, ...placeOf({}, next), waitingFor: reason, message },
    pod: next,
    isFirst: !turn.isAsked && rolled.every(({ shard }) => shard !== next.shard),
  };
}

/** True if this status says that the revision is being rolled out. */
function isGoingOn(status: RolloutStatus | undefined, revision: string): boolean {
  const { waitingFor, revision: current } = status ?? {};
  return current === revision && waitingFor !== undefined && waitingFor !== "UnknownShard";
}

/** The pod that the rollout waits for, or else the pod that waits. */
function placeOf({ pod }: Pick<Partial<Blocker>, "pod">, next: RollPod | undefined): Pick<RolloutStatus, "shard" | "pod"> {
  const shown = pod ?? next;
  return shown === undefined ? {} : { shard: subsetDisplayName(shown.shard), pod: shown.name };
}

interface RolloutEvent {
  readonly type: EventType;
  readonly reason: "RolloutStarted" | "RolloutShard" | "RolloutFinished" | "RolloutRefused";
  readonly message: string;
}

const REFUSED = ["NotOnDelete", "TooManyPods", "UnknownShard"];

export function rolloutEvents(before: RolloutStatus | undefined, step: RolloutStep): RolloutEvent[] {
  if (step.kind === "off") return [];
  const { revision, shard, waitingFor = "", message = "", total } = step.status;
  if (REFUSED.includes(waitingFor)) {
    return before?.message === message ? [] : [{ type: "Warning", reason: "RolloutRefused", message }];
  }
  if (revision === undefined) return [];
  const type = "Normal";
  if (step.kind === "done") return isGoingOn(before, revision) ? [{ type, reason: "RolloutFinished", message }] : [];
  const started = `shard ${shard} gets revision ${revision}, beginning with pod ${step.status.pod}`;
  return [
    ...(isGoingOn(before, revision)
      ? []
      : [{ type, reason: "RolloutStarted", message: `revision ${revision} is rolled out to ${total} pods` } as const]),
    ...(step.kind === "evict" && step.isFirst ? [{ type, reason: "RolloutShard", message: started } as const] : []),
  ];
}
