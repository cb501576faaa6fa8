// Which normal shards of a root own namespaces: the active ones. Pure. Invariants: at least one shard is
// active; if only the time passes, nothing changes before `againMs`.
//
// - A shard leaves at once if the StatefulSet or the spec no longer has it. It is lost if none of its pods
//   was ready for the grace time while another shard had a ready pod.
// - A shard joins when it is ready. Shards that become ready one after the other join together, because each
//   change of the active shards moves namespaces and restarts pods.
// - A shard that was lost joins only after it was ready for a hold time, which doubles with each further
//   loss. So a pod that crashes again and again takes nothing from the other shards.
import { MAX_NORMAL_SHARDS } from "../../api/sharding-keys.ts";

/** The hold time after the first loss. */
const FIRST_HOLD_MS = 60_000;
const MAX_HOLD_MS = 3_600_000;
/** A loss is forgotten after this time: the next one counts as the first. */
const FORGET_MS = 6 * 3_600_000;
/** Ready shards join this long after the last of them became ready, unless no other shard can follow. */
const SETTLE_MS = 60_000;
/** The longest time that the first of them waits for the others. */
const MAX_SETTLE_MS = 5 * 60_000;
/** The grace time of a shard whose pod the manager has evicted. */
const RESTART_GRACE_MS = 30 * 60_000;

export interface Membership {
  /** The numbers of the shards that own namespaces, ascending. */
  readonly active: readonly number[];
  /** Active shards without a ready pod, and since when, in ms. */
  readonly away: ReadonlyMap<number, number>;
  /** The losses that are not forgotten, by shard. Some of these shards are active again. */
  readonly losses: ReadonlyMap<number, Loss>;
}

interface Loss {
  /** The number of losses. */
  readonly times: number;
  /** The time of the last loss. */
  readonly lastMs: number;
}

/** Shared by the facts of a membership and of a placement. */
export interface ShardFacts {
  /** Since when each normal shard has had a ready pod, in ms. */
  readonly readySince: ReadonlyMap<number, number>;
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
}

interface MembershipStep extends Membership {
  /** The time until the next change by time alone; undefined if there is none. */
  readonly againMs: number | undefined;
}

export function membershipOf(facts: MembershipFacts): MembershipStep {
  const { previous, shards, exists, readySince, nowMs } = facts;
  const existing = numbersUpTo(MAX_NORMAL_SHARDS).filter(exists);
  const before = previous?.active ?? numbersUpTo(shards);
  // While no shard is ready, no shard could take over, so the grace time does not run.
  const isAnyReady = existing.some((shard) => readySince.has(shard));
  const awaySince = (shard: number) => Math.min(previous?.away.get(shard) ?? nowMs, nowMs);
  const lostAtMs = (shard: number) => awaySince(shard) + graceOf(facts, shard);
  const isLost = (shard: number) => isAnyReady && !readySince.has(shard) && nowMs >= lostAtMs(shard);

  const losses = lossesOf(
    facts,
    before.filter((shard) => exists(shard) && isLost(shard)),
  );
  const kept = existing.filter((shard) => before.includes(shard) && !isLost(shard));
  const waiting = existing.filter((shard) => !before.includes(shard));
  const joining = joinersOf(facts, waiting, losses);
  // If no active shard is left, the ready ones take over at once.
  const joiners = kept.length === 0 ? waiting.filter((shard) => readySince.has(shard)) : joining.now;
  const active = [...kept, ...joiners].sort((a, b) => a - b);
  if (active.length === 0) active.push(...before);

  const unready = isAnyReady ? active.filter((shard) => !readySince.has(shard)) : [];
  const times = [...unready.map(lostAtMs), ...joining.laterMs];
  return {
    active,
    away: new Map(unready.map((shard) => [shard, awaySince(shard)])),
    losses,
    againMs: times.length === 0 ? undefined : Math.max(1, Math.min(...times) - nowMs),
  };
}

function graceOf({ graceMs, restarting }: MembershipFacts, shard: number): number {
  return restarting.has(shard) ? Math.max(graceMs, RESTART_GRACE_MS) : graceMs;
}

function lossesOf({ previous, exists, nowMs }: MembershipFacts, lost: readonly number[]): Map<number, Loss> {
  const recent = [...(previous?.losses ?? [])].filter(([shard, { lastMs }]) => exists(shard) && nowMs - lastMs < FORGET_MS);
  const losses = new Map(recent);
  for (const shard of lost) losses.set(shard, { times: (losses.get(shard)?.times ?? 0) + 1, lastMs: nowMs });
  return losses;
}

/**
 * The shards that join now, and the times at which others may join.
 * @param waiting the shards that exist and are not active
 */
function joinersOf({ readySince, nowMs }: MembershipFacts, waiting: readonly number[], losses: ReadonlyMap<number, Loss>) {
  const ready = waiting.filter((shard) => readySince.has(shard));
  const dueMs = (shard: number) => Math.min(readySince.get(shard) ?? nowMs, nowMs) + holdMs(losses.get(shard));
  const due = ready.filter((shard) => dueMs(shard) <= nowMs);
  const heldUntilMs = ready.filter((shard) => dueMs(shard) > nowMs).map(dueMs);
  // A shard that was lost may stay away for ever, so no other shard waits for its pod.
  const canOthersFollow = heldUntilMs.length > 0 || waiting.some((shard) => !readySince.has(shard) && !losses.has(shard));
  if (due.length === 0) return { now: [], laterMs: heldUntilMs };
  const times = due.map(dueMs);
  const settledMs = Math.min(Math.max(...times) + SETTLE_MS, Math.min(...times) + MAX_SETTLE_MS);
  if (!canOthersFollow || nowMs >= settledMs) return { now: due, laterMs: heldUntilMs };
  return { now: [], laterMs: [settledMs, ...heldUntilMs] };
}

function holdMs(loss: Loss | undefined): number {
  return loss === undefined ? 0 : Math.min(FIRST_HOLD_MS * 2 ** (loss.times - 1), MAX_HOLD_MS);
}

export function numbersUpTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}
