// Which normal shards of a root own namespaces: the active ones. Pure. Invariants: at least one shard is
// active; if only the time passes, the active shards stay the same until `againMs`.
//
// - A shard leaves at once if the StatefulSet or the spec no longer has it. It is lost if none of its pods
//   was ready for the grace time while another shard had a ready pod.
// - A shard joins when it is ready. Shards that become ready one after the other join together, because each
//   change of the active shards moves namespaces and restarts pods.
// - A shard that was lost joins only after it was ready for a hold time, which doubles with each further
//   loss. So a pod that crashes again and again takes nothing from the other shards.
// - No shard joins while the budget of moves is used up (move-budget.ts).
import { MAX_NORMAL_SHARDS } from "../../api/sharding-keys.ts";

/** The hold time after the first loss. */
const FIRST_HOLD_MS = 60_000;
const MAX_HOLD_MS = 3_600_000;
/** More losses make no difference to the hold time. */
const MAX_LOSSES = 20;
/** An active shard's losses are forgotten this long after the last of them: the next one counts as the first. */
const FORGET_MS = 6 * 3_600_000;
/** Ready shards join this long after the last of them became ready; at once if no other shard can follow. */
const SETTLE_MS = 2 * 60_000;
/** The longest time that the first of them waits for the others. */
const MAX_SETTLE_MS = 10 * 60_000;
/** The shortest grace time of a shard whose pod the manager has evicted. */
const RESTART_GRACE_MS = 30 * 60_000;

/** All times are those at which the manager saw something, in ms: the clocks of nodes do not count. */
export interface Membership {
  /** The numbers of the shards that own namespaces, ascending. */
  readonly active: readonly number[];
  /** Active shards without a ready pod, and since when. */
  readonly away: ReadonlyMap<number, number>;
  /** Since when no shard at all has a ready pod; undefined if one has. */
  readonly noneReadySinceMs: number | undefined;
  /** Shards that are ready and not active yet, and since when. */
  readonly waiting: ReadonlyMap<number, number>;
  /** The losses that are not forgotten, by shard. Some of these shards are active again. */
  readonly losses: ReadonlyMap<number, Loss>;
}

export interface Loss {
  /** The number of losses. */
  readonly times: number;
  /** The time of the last loss. */
  readonly lastMs: number;
}

/** Shared by the facts of a membership and of a placement. */
export interface ShardFacts {
  /** The normal shards that have a ready pod. */
  readonly ready: ReadonlySet<number>;
  /** Shards of which the manager has evicted a pod that is not replaced yet. */
  readonly restarting: ReadonlySet<number>;
  readonly nowMs: number;
}

interface MembershipFacts extends ShardFacts {
  readonly previous: Membership | undefined;
  /** The number of shards that the root should have. */
  readonly shards: number;
  /** False if the root should not have the shard, or the StatefulSet is too small for it. */
  readonly exists: (shard: number) => boolean;
  readonly graceMs: number;
  /** No shard joins before this time, unless no active shard is left. */
  readonly joinsFromMs: number;
}

interface MembershipStep extends Membership {
  /** The time until the next change by time alone; undefined if there is none. */
  readonly againMs: number | undefined;
}

export function membershipOf(facts: MembershipFacts): MembershipStep {
  const { previous, shards, exists, ready, nowMs } = facts;
  const existing = numbersUpTo(MAX_NORMAL_SHARDS).filter(exists);
  const before = previous?.active ?? numbersUpTo(shards);
  // While no shard is ready, no shard could take over, so the grace time does not run.
  const isAnyReady = existing.some((shard) => ready.has(shard));
  const awaySinceMs = (shard: number) => (isAnyReady ? awaySinceWithoutPause(facts, shard) : awaySince(facts, shard));
  const lostAtMs = (shard: number) => awaySinceMs(shard) + graceOf(facts, shard);
  const isLost = (shard: number) => isAnyReady && !ready.has(shard) && nowMs >= lostAtMs(shard);

  const kept = existing.filter((shard) => before.includes(shard) && !isLost(shard));
  const lost = existing.filter((shard) => before.includes(shard) && isLost(shard));
  const losses = lossesOf(facts, lost, kept);
  const outside = existing.filter((shard) => !before.includes(shard));
  const joining = joinersOf(facts, outside, losses);
  // If no active shard is left, the ready ones take over at once.
  const joiners = kept.length === 0 ? outside.filter((shard) => ready.has(shard)) : joining.now;
  const active = [...kept, ...joiners].sort((a, b) => a - b);
  if (active.length === 0) active.push(...before);

  const waiting = outside.filter((shard) => ready.has(shard) && !active.includes(shard));
  const unready = active.filter((shard) => !ready.has(shard));
  const times = [...(isAnyReady ? unready.map(lostAtMs) : []), ...joining.laterMs];
  return {
    active,
    away: new Map(unready.map((shard) => [shard, awaySinceMs(shard)])),
    noneReadySinceMs: isAnyReady ? undefined : Math.min(previous?.noneReadySinceMs ?? nowMs, nowMs),
    waiting: new Map(waiting.map((shard) => [shard, waitingSince(facts, shard)])),
    losses,
    againMs: times.length === 0 ? undefined : Math.max(1, Math.min(...times) - nowMs),
  };
}

/** Since when an active shard has no ready pod. */
function awaySince({ previous, nowMs }: MembershipFacts, shard: number): number {
  return Math.min(previous?.away.get(shard) ?? nowMs, nowMs);
}

/** The same, later by the time for which no shard at all was ready. Only if a shard is ready now. */
function awaySinceWithoutPause(facts: MembershipFacts, shard: number): number {
  const { previous, nowMs } = facts;
  const sinceMs = awaySince(facts, shard);
  const pauseStartMs = Math.min(previous?.noneReadySinceMs ?? nowMs, nowMs);
  return sinceMs + nowMs - Math.max(pauseStartMs, sinceMs);
}

function graceOf({ graceMs, restarting }: MembershipFacts, shard: number): number {
  return restarting.has(shard) ? Math.max(graceMs, RESTART_GRACE_MS) : graceMs;
}

/**
 * The losses of a shard are forgotten only while it owns namespaces. A shard that is still lost, or that a
 * scale-down has removed for a while, keeps them.
 */
function lossesOf({ previous, nowMs }: MembershipFacts, lost: readonly number[], kept: readonly number[]): Map<number, Loss> {
  const known = [...(previous?.losses ?? [])].map(([shard, { times, lastMs }]): [number, Loss] => {
    return [shard, { times, lastMs: Math.min(lastMs, nowMs) }];
  });
  const isForgotten = (shard: number, { lastMs }: Loss) => kept.includes(shard) && nowMs - lastMs >= FORGET_MS;
  const losses = new Map(known.filter(([shard, loss]) => !isForgotten(shard, loss)));
  for (const shard of lost) {
    const times = Math.min((losses.get(shard)?.times ?? 0) + 1, MAX_LOSSES);
    losses.set(shard, { times, lastMs: nowMs });
  }
  return losses;
}

/**
 * The shards that join now, and the times at which others may join.
 * @param outside the shards that exist and are not active
 */
function joinersOf(facts: MembershipFacts, outside: readonly number[], losses: ReadonlyMap<number, Loss>) {
  const { ready, nowMs } = facts;
  const candidates = outside.filter((shard) => ready.has(shard));
  const dueMs = (shard: number) => waitingSince(facts, shard) + holdMs(losses.get(shard));
  const due = candidates.filter((shard) => dueMs(shard) <= nowMs);
  const futureMs = candidates.filter((shard) => dueMs(shard) > nowMs).map(dueMs);
  if (due.length === 0) return { now: [], laterMs: futureMs };
  // A shard that was lost may stay away for ever, so no other shard waits for its pod.
  const canOthersFollow = futureMs.length > 0 || outside.some((shard) => !ready.has(shard) && !losses.has(shard));
  const times = due.map(dueMs);
  const settledMs = canOthersFollow ? Math.min(Math.max(...times) + SETTLE_MS, Math.min(...times) + MAX_SETTLE_MS) : nowMs;
  const joinMs = Math.max(settledMs, facts.joinsFromMs);
  return nowMs >= joinMs ? { now: due, laterMs: futureMs } : { now: [], laterMs: [joinMs, ...futureMs] };
}

function waitingSince({ previous, nowMs }: MembershipFacts, shard: number): number {
  return Math.min(previous?.waiting.get(shard) ?? nowMs, nowMs);
}

export function holdMs(loss: Loss | undefined): number {
  return loss === undefined ? 0 : Math.min(FIRST_HOLD_MS * 2 ** (loss.times - 1), MAX_HOLD_MS);
}

export function numbersUpTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}
