// Finds the reason why a rollout cannot go on yet. Pure.
import { subsetDisplayName } from "../../route/words.ts";
import { LEADER_UNKNOWN_MS } from "../restart/restart-plan.ts";
import type { RolloutFacts, RollPod } from "./roll-facts.ts";

export interface Blocker {
  readonly reason: string;
  readonly message: string;
  readonly pod?: RollPod;
  readonly recheckMs?: number;
}

export interface Turn {
  readonly next: RollPod | undefined;
  /** Its eviction was or may have been requested. */
  readonly isAsked: boolean;
  /** The pods with the new revision. */
  readonly rolled: readonly RollPod[];
  readonly left: readonly RollPod[];
  /** The names of wanted pods that do not exist. */
  readonly missing: readonly string[];
  /** The shards to roll out, in order. */
  readonly shards: readonly string[];
}

export function rolloutBlocker(facts: RolloutFacts, turn: Turn): Blocker | undefined {
  const { next, isAsked } = turn;
  return (
    pauseOf(facts, turn) ??
    unreadyOf(facts, turn) ??
    silentOf(turn) ??
    (isAsked ? undefined : (leaderless(facts, turn) ?? soakOf(facts, turn))) ??
    (next && refusalOf(facts, next))
  );
}

function pauseOf({ pausedFields, isRestarting }: RolloutFacts, { next, left }: Turn): Blocker | undefined {
  if (next === undefined) return undefined;
  if (pausedFields.length > 0) {
    const waits = left.length === 1 ? "1 pod waits" : `${left.length} pods wait`;
    const message = `${waits} for the new revision: set ${pausedFields.join(" and ")} to false to go on`;
    return { reason: "Paused", message };
  }
  if (isRestarting) return { reason: "Restarting", message: "a pod that lost namespaces is evicted first" };
  return undefined;
}

// An unready pod that is to be restarted blocks nothing. Otherwise a broken revision could not be replaced.
function unreadyOf({ pods }: RolloutFacts, { left, missing: [missing] }: Turn): Blocker | undefined {
  const ending = pods.find(({ isTerminating }) => isTerminating);
  if (ending !== undefined) return { reason: "NotReady", message: `pod ${ending.name} is ending`, pod: ending };
  if (missing !== undefined) return { reason: "NotReady", message: `pod ${missing} does not exist yet` };
  const unready = pods.find((pod) => !pod.isReady && !left.includes(pod));
  return unready && { reason: "NotReady", message: `pod ${unready.name} is not ready`, pod: unready };
}

function silentOf({ next, rolled, left }: Turn): Blocker | undefined {
  const behind = rolled.find(({ hasProxy, isConnected, isAcknowledged }) => hasProxy && !(isConnected && isAcknowledged));
  if (behind !== undefined) {
    const message = `the proxy of pod ${behind.name} has not acknowledged its snapshot yet`;
    return { reason: "NotAcknowledged", message, pod: behind };
  }
  const silent = left.find(
    ({ shard, hasProxy, isReady, isConnected }) => shard === next?.shard && hasProxy && isReady && !isConnected,
  );
  const message = `the proxy of pod ${silent?.name} is not connected, and may lead`;
  return silent && { reason: "NotReported", message, pod: silent };
}

function leaderless(facts: RolloutFacts, { next, rolled, shards }: Turn): Blocker | undefined {
  if (!facts.hasLock) return undefined;
  for (const shard of shards) {
    const shardPods = facts.pods.filter((pod) => pod.shard === shard && pod.hasProxy);
    const isBegun = rolled.some((pod) => pod.shard === shard && pod.hasProxy);
    if ((!isBegun && shard !== next?.shard) || shardPods.length === 0 || shardPods.some(({ isLeader }) => isLeader)) continue;
    const message = `no pod of shard ${subsetDisplayName(shard)} holds the lock`;
    if (isBegun) return { reason: "LeaderUnknown", message };
    const recheckMs = LEADER_UNKNOWN_MS - (facts.nowMs - latestOf(shardPods));
    if (recheckMs > 0) return { reason: "LeaderUnknown", message, recheckMs };
  }
  return undefined;
}

function soakOf({ soakMs, nowMs }: RolloutFacts, { next, rolled, shards }: Turn): Blocker | undefined {
  if (next === undefined) return undefined;
  const earlier = rolled.filter(({ shard }) => shards.indexOf(shard) < shards.indexOf(next.shard));
  const recheckMs = soakMs - (nowMs - latestOf(earlier));
  if (earlier.length === 0 || recheckMs <= 0) return undefined;
  const message = `the pods of the previous shards must have been ready for ${soakMs / 1000} s`;
  return { reason: "Soaking", message, recheckMs };
}

function refusalOf(facts: RolloutFacts, next: RollPod): Blocker | undefined {
  const refusal = facts.refusalOf(next.uid);
  const recheckMs = (refusal?.retryAtMs ?? 0) - facts.nowMs;
  if (refusal === undefined || recheckMs <= 0) return undefined;
  return { reason: refusal.reason, message: refusal.message, recheckMs, pod: next };
}

/** When the last of these pods became ready. */
function latestOf(pods: readonly RollPod[]): number {
  return Math.max(...pods.map(({ readySinceMs }) => readySinceMs ?? Number.NEGATIVE_INFINITY));
}
