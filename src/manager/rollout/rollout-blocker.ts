// Finds the reason why a rollout cannot go on yet. Pure.
import { subsetDisplayName } from "../../mesh/ownership/words.ts";
import { LEADER_UNKNOWN_MS } from "../restart/restart-blocker.ts";
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
  /** The names of wanted pods of these shards that do not exist, in order. */
  readonly missing: readonly string[];
  /** The shards to roll out, in order. */
  readonly shards: readonly string[];
}

export function rolloutBlocker(facts: RolloutFacts, turn: Turn): Blocker | undefined {
  const { next, isAsked } = turn;
  return (
    pauseOf(facts, turn) ??
    strayOf(turn) ??
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

// Such a pod writes outside of its shard, so the revision must reach no other pod.
function strayOf({ rolled }: Turn): Blocker | undefined {
  const bare = rolled.find(({ hasProxy }) => !hasProxy);
  if (bare !== undefined) {
    const what = "has the new revision and no proxy of this family, so it may write everywhere";
    return { reason: "NotInjected", message: `pod ${bare.name} ${what}: restart it to have it injected`, pod: bare };
  }
  const stray = rolled.find(({ shard, enforcedShard }) => enforcedShard !== undefined && enforcedShard !== shard);
  if (stray === undefined) return undefined;
  const [enforced, shard] = [stray.enforcedShard ?? "", stray.shard].map(subsetDisplayName);
  return {
    reason: "OtherShard",
    message: `the proxy of pod ${stray.name} enforces shard ${enforced} and not ${shard}`,
    pod: stray,
  };
}

// An unready pod that is to be restarted blocks nothing. Otherwise a broken revision could not be replaced. Nor
// does a pod of a shard that comes later, or that is not rolled out: the canary has to work, and not the others.
function unreadyOf({ pods, shardOf }: RolloutFacts, { next, left, missing, shards }: Turn): Blocker | undefined {
  const reached = next === undefined ? shards : shards.slice(0, shards.indexOf(next.shard) + 1);
  const reachedPods = pods.filter(({ shard }) => reached.includes(shard));
  const ending = reachedPods.find(({ isTerminating }) => isTerminating);
  if (ending !== undefined) return { reason: "NotReady", message: `pod ${ending.name} is ending`, pod: ending };
  const absent = missing.find((name) => reached.includes(shardOf(name)));
  if (absent !== undefined) return { reason: "NotReady", message: `pod ${absent} does not exist yet` };
  const unready = reachedPods.find((pod) => !pod.isReady && !left.includes(pod));
  if (unready === undefined) return undefined;
  const why = unready.isUnschedulable ? ": no node takes it" : "";
  return { reason: "NotReady", message: `pod ${unready.name} is not ready${why}`, pod: unready };
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
